/** Attempts: what is asked is what the log says, chunks keep the stream's grammar, an answer is made of them. */
import type { AttemptPlace } from '../attempts.ts'
import { createRequestDigester } from '../digest.ts'
import type { EventMap, KnownEvent, SessionEvent } from '../events.ts'
import { equalJson } from '../json.ts'
import type { FinishReason, StreamChunk } from '../messages.ts'
import { requestOf } from '../rebuild.ts'
import type { Frame, Report, TopicOf } from './topic.ts'

/** What came of the attempt that is asking. */
interface Stream {
  readonly place: AttemptPlace
  readonly chunkSeqs: number[]
  readonly open: Map<number, string>
  readonly closed: Set<number>
  usage: boolean
  finish: FinishReason | undefined
}

const openStream = (place: AttemptPlace): Stream => ({
  place,
  chunkSeqs: [],
  open: new Map(),
  closed: new Set(),
  usage: false,
  finish: undefined,
})

export const streams: TopicOf = (frame, report) => {
  const digester = createRequestDigester()
  let stream = openStream(NOWHERE)
  let answered = false

  const checkFirst = (request: string | undefined) => {
    const asking = frame.attempts.current()
    if (!asking?.header) return report('REQUEST-HEADER', 'the first chunk comes before any request/header')
    const expected = digester.digest(requestOf(asking.header, asking.messages, ''))
    if (request !== expected)
      report('REQUEST-DIGEST', `the log gives ${expected}, the chunk says ${request ?? 'nothing'}`)
  }
  const checkChunk = ({ seq, data }: KnownEvent<'assistant/chunk'>) => {
    if (!frame.attempts.isAsking(data))
      return report('CHUNK-ATTEMPT', `a chunk of attempt ${keyOf(data)}, ${askingNow(frame)}`)
    if (!isOf(stream, data)) stream = openStream(data)
    if (stream.chunkSeqs.length === 0) checkFirst(data.request)
    else if (data.request !== undefined) report('REQUEST-DIGEST', 'only the first chunk has a digest')
    stream.chunkSeqs.push(seq)
    checkGrammar(stream, data.chunk, report)
  }
  const checkAnswer = (event: KnownEvent<'assistant/message'>) => {
    if (answered) report('ANSWER-ONCE', `step ${frame.turn}/${frame.step} has an answer already`)
    else if (!frame.attempts.isAsking(event.data))
      report('ANSWER-ATTEMPT', `an answer to ${keyOf(event.data)}, ${askingNow(frame)}`)
    answered = true
    const mine = isOf(stream, event.data) ? stream : openStream(event.data)
    checkSources(mine, event.sourceEventSeqs, report)
    if (event.data.interrupted) checkInterrupted(frame, event.data, mine.finish, report)
    else checkFinish(mine.finish, event.data.finish, report)
  }
  const checkFailure = (data: EventMap['llm/retry']) => {
    const finish = isOf(stream, data) ? stream.finish : undefined
    if (!finish || succeeds(finish) || !('failure' in finish)) return
    // One too long for the log is cut short.
    const same = equalJson(data.failure, finish.failure) || JSON.stringify(finish.failure).length > LONG
    if (!same) report('RETRY-FAILURE', `it fails with ${data.failure.code}, its stream with ${finish.failure.code}`)
  }

  return {
    check(event: SessionEvent) {
      if (event.type === 'assistant/chunk') checkChunk(event)
      else if (event.type === 'assistant/message') checkAnswer(event)
      else if (event.type === 'llm/retry') checkFailure(event.data)
      else if (event.type === 'step/start') answered = false
    },
  }
}

/** Characters of a failure that is kept whole. */
const LONG = 65_536

/** Before the first attempt. */
const NOWHERE: AttemptPlace = { turn: 0, step: 0, attempt: 0 }

const isOf = ({ place }: Stream, at: AttemptPlace): boolean =>
  place.attempt === at.attempt && place.step === at.step && place.turn === at.turn

const keyOf = (at: AttemptPlace): string => `${at.turn}/${at.step}/${at.attempt}`

/** For messages: which attempt asks. */
export function askingNow(frame: Frame): string {
  const now = frame.attempts.current()
  return now ? `while ${keyOf(now)} is asking` : 'while none is asking'
}

const DELTAS: { readonly [type: string]: string } = {
  'text-delta': 'text',
  'reasoning-delta': 'reasoning',
  'tool-call-delta': 'tool-call',
}

function checkGrammar(stream: Stream, chunk: StreamChunk, report: Report): void {
  if (stream.finish) report('STREAM-FINISH', `${chunk.type} after finish`)
  switch (chunk.type) {
    case 'usage':
      if (stream.usage) report('STREAM-USAGE', 'a second usage')
      stream.usage = true
      return
    case 'finish':
      if (stream.open.size > 0 && succeeds(chunk.reason))
        report('STREAM-FINISH', `${chunk.reason.kind} with a block open`)
      stream.finish = chunk.reason
      return
    case 'block-start':
      if (stream.open.has(chunk.index) || stream.closed.has(chunk.index))
        report('STREAM-BLOCKS', `block ${chunk.index} is opened again`)
      stream.open.set(chunk.index, chunk.blockType)
      return
    case 'block-end':
      checkInBlock(stream, chunk.index, chunk.block.type, report)
      stream.open.delete(chunk.index)
      stream.closed.add(chunk.index)
      return
    default:
      checkInBlock(stream, chunk.index, DELTAS[chunk.type] ?? chunk.type, report)
  }
}

function checkInBlock(stream: Stream, index: number, type: string, report: Report): void {
  const open = stream.open.get(index)
  if (open !== type)
    report('STREAM-BLOCKS', `${type} in block ${index}, which is ${open === undefined ? 'not open' : open}`)
}

const succeeds = (reason: FinishReason): boolean => reason.kind !== 'error' && reason.kind !== 'aborted'

function checkSources(stream: Stream, sources: readonly number[] | undefined, report: Report): void {
  if (sources === undefined) return
  const same = sources.length === stream.chunkSeqs.length && sources.every((seq, i) => seq === stream.chunkSeqs[i])
  if (!same)
    report(
      'ANSWER-SOURCES',
      `it cites ${sources.length} events, not the ${stream.chunkSeqs.length} chunks of its attempt`,
    )
}

type Finished = FinishReason | undefined

function checkInterrupted(frame: Frame, data: EventMap['assistant/message'], chunk: Finished, report: Report): void {
  if (data.finish.kind !== 'aborted' && data.finish.kind !== chunk?.kind)
    report('STREAM-FINISH', `it ends ${data.finish.kind}, and not by the cancel`)
  if (!frame.cancel) report('ANSWER-INTERRUPTED', 'the turn is not cancelled')
  if (data.calls.length > 0) report('ANSWER-INTERRUPTED', 'it asks for tools')
}

function checkFinish(chunk: FinishReason | undefined, answer: FinishReason, report: Report): void {
  if (!chunk) report('STREAM-FINISH', 'an answer without a finish chunk')
  else if (!succeeds(chunk) || chunk.kind !== answer.kind)
    report('STREAM-FINISH', `the answer says ${answer.kind}, its stream ${chunk.kind}`)
}
