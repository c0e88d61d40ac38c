/** A log to read: an event a line, indented by turn and step, with runs of chunks folded to a count. */
import type { InboxItem, KnownEvent, SessionEvent } from '../../log/events.ts'
import { type ContentBlock, textOf } from '../../log/messages.ts'
import { reasonLine } from './reasons.ts'
import { resultText } from './run-view.ts'
import { callLine, clockTime, count, oneLine, type Palette } from './text.ts'

const WIDTH = 100

/** The lines of a log, in order, as its events come; at most one run of chunks is held back. */
export async function* eventLines(
  events: AsyncIterable<SessionEvent> | Iterable<SessionEvent>,
  palette: Palette,
): AsyncGenerator<string> {
  let depth = 0
  let chunks: KnownEvent<'assistant/chunk'>[] = []
  for await (const event of events) {
    if (event.type === 'assistant/chunk' && chunks.every((one) => one.data.attempt === event.data.attempt)) {
      chunks.push(event)
      continue
    }
    if (chunks.length > 0) yield chunkLine(chunks, depth, palette)
    chunks = event.type === 'assistant/chunk' ? [event] : []
    if (event.type === 'assistant/chunk') continue
    if (event.type === 'turn/end' || event.type === 'turn/start') depth = 0
    if (event.type === 'step/end' || event.type === 'step/start') depth = 1
    yield eventLine(event, depth, palette)
    if (event.type === 'turn/start' || event.type === 'step/end') depth = 1
    if (event.type === 'step/start') depth = 2
  }
  if (chunks.length > 0) yield chunkLine(chunks, depth, palette)
}

function chunkLine(chunks: readonly KnownEvent<'assistant/chunk'>[], depth: number, palette: Palette): string {
  const [first, last] = [chunks[0], chunks.at(-1)]
  const seqs = chunks.length > 1 ? `to seq ${last?.seq}, ` : ''
  const what = `${seqs}${count(chunks.length, 'chunk')}, attempt ${first?.data.attempt}`
  return placed(first?.seq ?? 0, first?.time ?? 0, depth, palette.dim(`assistant/chunk  ${what}`), palette)
}

/** One event in a line. */
export function eventLine(event: SessionEvent, depth: number, palette: Palette): string {
  const said = detail(event)
  const type = event.type.startsWith('turn/') || event.type.startsWith('step/') ? palette.bold(event.type) : event.type
  return placed(event.seq, event.time, depth, said === '' ? type : `${type}  ${palette.dim(said)}`, palette)
}

const placed = (seq: number, time: number, depth: number, text: string, palette: Palette): string =>
  `${palette.dim(`${String(seq).padStart(5)}  ${clockTime(time)}`)}  ${'  '.repeat(depth)}${text}`

function detail(event: SessionEvent): string {
  switch (event.type) {
    case 'agent/inbox/spliced':
      return splice(event.data)
    case 'turn/start':
      return `turn ${event.data.turn}`
    case 'turn/cancel':
      return `turn ${event.data.turn}, by ${event.data.cause.kind}`
    case 'turn/end':
      return `turn ${event.data.turn}: ${reasonLine(event.data.reason)}`
    case 'step/start':
      return `step ${event.data.step}`
    case 'step/end':
      return `step ${event.data.step}: ${event.data.outcome.kind}`
    case 'user/message':
      return `${event.data.source.kind}: ${blocks(event.data.content)}`
    case 'assistant/message':
      return answer(event.data)
    case 'request/context':
      return `${event.data.provider}/${event.data.model}`
    case 'request/header':
      return `${event.data.reason}, ${count(event.data.header.tools?.length ?? 0, 'tool')}`
    case 'llm/retry':
      return `retry ${event.data.retry} in ${event.data.delayMs} ms: ${event.data.failure.code}`
    case 'llm/retry-started':
      return `attempt ${event.data.attempt}`
    default:
      return toolDetail(event)
  }
}

function toolDetail(event: SessionEvent): string {
  switch (event.type) {
    case 'tool/call':
      return `${event.data.callId} ${callLine(event.data, WIDTH)}`
    case 'tool/approval-requested':
      return `${event.data.callId} run ${event.data.run}, ${event.data.purpose}`
    case 'tool/approval-resolved':
      return `${event.data.callId} run ${event.data.run}, ${event.data.decision}${event.data.by === undefined ? '' : ` by ${oneLine(event.data.by, 60)}`}`
    case 'tool/dispatch':
      return `${event.data.callId} run ${event.data.run}, onCrash ${event.data.onCrash}`
    case 'tool/result':
      return `${event.data.message.source.callId} ${event.data.error?.code ?? 'ok'}: ${oneLine(resultText(event.data.message), WIDTH)}`
    case 'tool/late-result':
      return `${event.data.callId} run ${event.data.run}, after its answer`
    case 'session/resumed':
      return `${event.data.recovery}, ${count(event.data.resumes, 'resume')} without progress`
    case 'agent/hook-failed':
      return `${event.data.hook}: ${event.data.error.code}`
    default:
      return ''
  }
}

function splice(data: KnownEvent<'agent/inbox/spliced'>['data']): string {
  const removed = data.deleteCount > 0 ? [`${data.outcome ?? 'removed'} ${data.deleteCount}`] : []
  const inserted = data.inserted.map((item) => `+ ${itemLine(item)}`)
  return [data.queue, ...removed, ...inserted].join(', ')
}

const itemLine = (item: InboxItem): string =>
  item.kind === 'message' ? oneLine(textOf(item.message), 60) : `result of ${item.callId}`

function answer(data: KnownEvent<'assistant/message'>['data']): string {
  const calls = data.calls.length > 0 ? `, ${count(data.calls.length, 'call')}` : ''
  const usage = data.usage ? `, ${data.usage.inputTokens} in + ${data.usage.outputTokens} out` : ''
  return `${data.finish.kind}${calls}${usage}: ${blocks(data.message.content)}`
}

const blocks = (content: readonly ContentBlock[]): string =>
  oneLine(textOf({ content }), WIDTH) || content.map((block) => block.type).join(' ')
