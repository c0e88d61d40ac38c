/**
 * A log as a recording: the attempts that a replay will make, in order, each with what was asked, what was said, and how
 * it ended. An attempt that was asked again after a crash or a suspend is none: its step has a later one.
 */
import { type AttemptPlace, trackAttempts } from '../../../log/attempts.ts'
import { InvalidEvent, InvalidLog, PawlError } from '../../../log/errors.ts'
import type { EventMap, KnownEvent, SessionEvent } from '../../../log/events.ts'
import type { LlmFailure, Message, StreamChunk } from '../../../log/messages.ts'
import { createSurface, type Surface } from '../../../log/projections/surface.ts'
import type { RequestHeader } from '../../../log/requests.ts'
import { validateStored } from '../../../log/validate.ts'

/** What came after an attempt's chunks. */
export type Ending =
  /** Nothing: its chunks end with a finish. */
  | { readonly kind: 'finished' }
  /** It failed outside its stream: before the model was asked, or by what a hook or a limit of the log made of it. */
  | { readonly kind: 'failed'; readonly failure: LlmFailure }
  | { readonly kind: 'cancelled' }
  /** The process or the recording ended here; what the model would have said next is not known. */
  | { readonly kind: 'cut' }

export interface RecordedAttempt {
  readonly place: AttemptPlace
  readonly messages: readonly Message[]
  /** What was asked beside the messages; only a guess for an attempt without chunks, null if there was none by then. */
  readonly header: RequestHeader | null
  readonly context: EventMap['request/context'] | undefined
  readonly chunks: readonly StreamChunk[]
  readonly ending: Ending
  /** The retry that was planned after it. */
  readonly retry: EventMap['llm/retry'] | undefined
}

export interface ModelName {
  readonly provider: string
  readonly model: string
}

export interface Recording {
  /** Those that were asked, in the order in which they first were. */
  readonly models: readonly [ModelName, ...ModelName[]]
  readonly attempts: readonly RecordedAttempt[]
}

/**
 * Reads a log from its first event on.
 * @throws InvalidLog or LogTooNew for what is no log; PawlError CASSETTE_EMPTY if no model was asked in it.
 */
export function recordingOf(events: Iterable<unknown>): Recording {
  const reader = createReader()
  let seq = 0
  let time = 0
  for (const given of events) {
    if (seq === 0) assertStart(given)
    const event = validateStored(given, seq, time)
    reader.take(event)
    time = event.time
    seq += 1
  }
  const attempts = reader.end()
  const [first, ...others] = modelsOf(attempts)
  if (!first) throw new PawlError(EMPTY, 'CASSETTE_EMPTY')
  return { models: [first, ...others], attempts }
}

function modelsOf(attempts: readonly RecordedAttempt[]): readonly ModelName[] {
  const named = new Map<string, ModelName>()
  for (const { header } of attempts) {
    if (!header) continue
    const { provider, model } = header.config
    const key = JSON.stringify([provider, model])
    if (!named.has(key)) named.set(key, { provider, model })
  }
  return [...named.values()]
}

const EMPTY = 'No model was asked in this log, so there is nothing to play: record a session that has had an answer'

/** What `run --json` prints of a session that was there before is only the end of its log. */
function assertStart(event: unknown): void {
  const seq = typeof event === 'object' && event !== null && 'seq' in event ? event.seq : undefined
  if (typeof seq !== 'number' || seq === 0) return
  const message = `the recording begins at seq ${seq}: it takes the whole log, as \`pawl cassette SESSION\` prints it`
  throw new InvalidLog(0, 'SEQ-CONTIGUOUS', message)
}

/** An attempt in the making: what is known since its first chunk, or at its end if it has none. */
interface Draft {
  readonly place: AttemptPlace
  readonly messages: readonly Message[]
  readonly header: RequestHeader | null
  readonly context: EventMap['request/context'] | undefined
  readonly chunks: StreamChunk[]
}

function createReader() {
  const surface = createSurface()
  const tracker = trackAttempts(surface)
  const attempts: RecordedAttempt[] = []
  let draft: Draft | undefined
  let context: EventMap['request/context'] | undefined
  let cancelled = false
  let ownFault = false

  /** The attempt that is asking, before the event at hand. */
  const asking = (): Draft | undefined => {
    if (draft) return draft
    const now = tracker.current()
    if (!now) return undefined
    const { turn, step, attempt, messages, header } = now
    const known = context?.provider === header?.config.provider && context?.model === header?.config.model
    return { place: { turn, step, attempt }, messages, header, context: known ? context : undefined, chunks: [] }
  }
  const takeChunk = ({ seq, data }: KnownEvent<'assistant/chunk'>) => {
    if (!tracker.isAsking(data)) throw new InvalidLog(seq, 'CHUNK-ATTEMPT', 'a chunk of an attempt that asks nothing')
    draft ??= asking()
    if (!draft?.header) throw new InvalidLog(seq, 'REQUEST-HEADER', 'a chunk comes before any request/header')
    draft.chunks.push(data.chunk)
  }
  const close = (ended: Draft | undefined, ending: Ending, retry?: EventMap['llm/retry']) => {
    const hooked = ownFault && ended?.chunks.length === 0
    draft = undefined
    ownFault = false
    if (!ended || hooked) return
    const finished = ended.chunks.at(-1)?.type === 'finish'
    attempts.push({ ...ended, ending: finished ? { kind: 'finished' } : ending, retry })
  }
  const cutOff = (): Ending => ({ kind: cancelled ? 'cancelled' : 'cut' })

  return {
    take(event: SessionEvent): void {
      // Read before the tracker takes the event: afterwards nobody is asking.
      const ended = ENDS.has(event.type) ? asking() : undefined
      tracker.note(event)
      switch (event.type) {
        case 'turn/start':
          cancelled = false
          break
        case 'turn/cancel':
          cancelled = true
          break
        case 'request/context':
          context = event.data
          break
        case 'assistant/chunk':
          takeChunk(event)
          break
        case 'agent/hook-failed':
          ownFault ||= event.data.hook === 'agent/request'
          break
        case 'session/resumed':
          // Asked again: what the lost attempt had said stays in the log, unused.
          if (ended && !tracker.isAsking(ended.place)) {
            draft = undefined
            ownFault = false
          }
          break
        case 'llm/retry':
          close(ended, { kind: 'failed', failure: event.data.failure }, event.data)
          break
        case 'assistant/message':
          assertFinished(event, ended)
          close(ended, { kind: 'cancelled' })
          break
        case 'step/end':
          close(ended, endingOf(event.data.outcome) ?? cutOff())
          break
        default:
      }
      placeOn(surface, event)
    },
    end(): readonly RecordedAttempt[] {
      close(asking(), cutOff())
      return attempts
    },
  }
}

const ENDS: ReadonlySet<string> = new Set(['session/resumed', 'llm/retry', 'assistant/message', 'step/end'])

const endingOf = (outcome: EventMap['step/end']['outcome']): Ending | undefined =>
  outcome.kind === 'error' ? { kind: 'failed', failure: outcome.error } : undefined

function assertFinished({ seq, data }: KnownEvent<'assistant/message'>, ended: Draft | undefined): void {
  if (data.interrupted || ended?.chunks.at(-1)?.type === 'finish') return
  throw new InvalidLog(seq, 'STREAM-FINISH', 'an answer without a finish chunk')
}

function placeOn(surface: Surface, event: SessionEvent): void {
  try {
    surface.place(event)
  } catch (error) {
    if (error instanceof InvalidEvent) throw new InvalidLog(event.seq, 'SURFACE', error.message)
    throw error
  }
}
