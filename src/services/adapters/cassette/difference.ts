/**
 * Where a request first differs from a recorded one. What a provider reads counts; ids that the loop mints do not: those
 * of messages are left out, and calls are told apart by their order.
 */
import type { ContentBlock, Message } from '../../../log/messages.ts'
import type { LlmRequest, RequestHeader } from '../../../log/requests.ts'
import type { RecordedAttempt } from './recording.ts'

/** In words: `recorded` and `asked` are shortened JSON, or 'nothing'. */
export interface Difference {
  /** As in `messages[2].content[0].text`. */
  readonly path: string
  readonly recorded: string
  readonly asked: string
}

/** Undefined if the same was asked. Of an attempt that said nothing only the messages are known, and compared. */
export function firstDifference(recorded: RecordedAttempt, asked: LlmRequest): Difference | undefined {
  const { header, messages, chunks } = recorded
  const beside = chunks.length > 0 && header ? compare(besideOf(header), besideOf(headerOf(asked)), '') : undefined
  return beside ?? compare(read(messages), read(asked.messages), 'messages')
}

/** The same as no first difference; most requests that differ have more messages or fewer, which is told at once. */
export const asksTheSame = (recorded: RecordedAttempt, asked: LlmRequest): boolean =>
  recorded.messages.length === asked.messages.length && firstDifference(recorded, asked) === undefined

function headerOf(request: LlmRequest): RequestHeader {
  const { messages: _, sessionId: __, system, tools, ...config } = request
  return { config, ...(system === undefined ? {} : { system }), ...(tools === undefined ? {} : { tools }) }
}

const besideOf = ({ config, system, tools }: RequestHeader): unknown => ({ ...config, system, tools })

/** The messages without what the loop alone knows: ids, and where a message of a user came from. */
function read(messages: readonly Message[]): unknown {
  const ordinals = new Map<string, string>()
  const ordinal = (id: string): string => {
    const known = ordinals.get(id) ?? `call ${ordinals.size + 1}`
    ordinals.set(id, known)
    return known
  }
  const block = (given: ContentBlock): unknown => {
    if (isCall(given)) return { ...given, id: ordinal(given.id) }
    return isResult(given) ? { ...given, toolCallId: ordinal(given.toolCallId) } : given
  }
  return messages.map(({ role, content, source }) => ({
    role,
    content: content.map(block),
    ...(source.kind === 'model' ? { source } : {}),
  }))
}

const isCall = (block: ContentBlock): block is Extract<ContentBlock, { type: 'tool-call' }> =>
  block.type === 'tool-call'
const isResult = (block: ContentBlock): block is Extract<ContentBlock, { type: 'tool-result' }> =>
  block.type === 'tool-result'

function compare(recorded: unknown, asked: unknown, path: string): Difference | undefined {
  if (Object.is(recorded, asked)) return undefined
  if (Array.isArray(recorded) && Array.isArray(asked)) return compareLists(recorded, asked, path)
  if (isRecord(recorded) && isRecord(asked)) return compareRecords(recorded, asked, path)
  return { path, ...inWords(recorded, asked) }
}

function compareLists(recorded: readonly unknown[], asked: readonly unknown[], path: string): Difference | undefined {
  for (let i = 0; i < Math.max(recorded.length, asked.length); i++) {
    const found = compare(recorded[i], asked[i], `${path}[${i}]`)
    if (found) return found
  }
  return undefined
}

type Fields = { readonly [key: string]: unknown }

function compareRecords(recorded: Fields, asked: Fields, path: string): Difference | undefined {
  for (const key of new Set([...Object.keys(recorded), ...Object.keys(asked)])) {
    const found = compare(recorded[key], asked[key], path === '' ? key : `${path}.${key}`)
    if (found) return found
  }
  return undefined
}

const isRecord = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** Characters shown of a value, and of a text before the place where it differs. */
const SHOWN = 80
const BEFORE = 24

function inWords(recorded: unknown, asked: unknown): Omit<Difference, 'path'> {
  if (typeof recorded !== 'string' || typeof asked !== 'string') {
    return { recorded: shortened(recorded), asked: shortened(asked) }
  }
  let same = 0
  while (same < recorded.length && recorded[same] === asked[same]) same += 1
  return { recorded: around(recorded, same), asked: around(asked, same) }
}

function around(text: string, at: number): string {
  const start = at <= BEFORE ? 0 : at - BEFORE
  const end = start + SHOWN
  return JSON.stringify(`${start > 0 ? '…' : ''}${text.slice(start, end)}${end < text.length ? '…' : ''}`)
}

function shortened(value: unknown): string {
  if (value === undefined) return 'nothing'
  const text = JSON.stringify(value)
  return text.length <= SHOWN ? text : `${text.slice(0, SHOWN)}…`
}
