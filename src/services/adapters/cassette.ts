/**
 * A session's log, played again as the model of a test. Each recorded attempt is said once, chunk by chunk, with no
 * network and no clock, and only to a request that asks what was asked then.
 */
import type { AttemptPlace } from '../../log/attempts.ts'
import type { SessionEvent } from '../../log/events.ts'
import type { LlmFailure, StreamChunk } from '../../log/messages.ts'
import type { LlmRequest } from '../../log/requests.ts'
import { InvalidOption } from '../errors.ts'
import type { ModelAdapter } from '../llm/adapter.ts'
import { asksTheSame, type Difference, firstDifference } from './cassette/difference.ts'
import { attemptsOf, preparedAs, retryOf } from './cassette/facts.ts'
import { type ModelName, type RecordedAttempt, recordingOf } from './cassette/recording.ts'

export interface CassetteOptions {
  /**
   * 'exact' (by default) plays the next attempt that was asked this; if none was, the request fails with
   * CASSETTE_MISMATCH. 'loose' plays the n-th attempt to the n-th request, whatever it asks.
   */
  readonly match?: 'exact' | 'loose'
}

/** The recording as a model, named as the first model in it. */
export interface Cassette extends ModelAdapter {
  /** The other models of the recording, for `models`: each is this cassette by another name. */
  readonly models: readonly ModelAdapter[]
  /** Attempts of the recording after the one played last. */
  readonly left: number
}

/**
 * Plays the model of a recorded session: the events of its whole log, from seq 0. An attempt that a cancel ended says
 * what it had said, then waits for the abort; one that was asked again after a crash is left out. Nothing is compared
 * of ids that the loop mints. Failures: CASSETTE_MISMATCH, and CASSETTE_EXHAUSTED when the recording says no more.
 * @throws InvalidOption; InvalidLog or LogTooNew for what is no log; PawlError CASSETTE_EMPTY if it asked no model.
 */
export function cassette(events: Iterable<SessionEvent>, options: CassetteOptions = {}): Cassette {
  const { match = 'exact' } = options
  assertEvents(events)
  if (match !== 'exact' && match !== 'loose') throw new InvalidOption('match', 'must be "exact" or "loose"')
  const { attempts, models } = recordingOf(events)
  const tape = createTape(attempts, match)
  const [first, ...others] = models
  return {
    ...adapterOf(first, attempts, tape),
    models: others.map((name) => adapterOf(name, attempts, tape)),
    get left() {
      return tape.ahead().length
    },
  }
}

function assertEvents(events: unknown): void {
  if (typeof events === 'object' && events !== null && Symbol.iterator in events) return
  throw new InvalidOption(
    'events',
    'must be a list of events: parse each line of a recording, and collect what a store reads',
  )
}

const adapterOf = (name: ModelName, attempts: readonly RecordedAttempt[], tape: Tape): ModelAdapter => {
  const all = attemptsOf(attempts, name)
  const retry = retryOf(all)
  return {
    ...name,
    ...(retry && { retry }),
    prepare: async (config) => preparedAs(config, { ahead: attemptsOf(tape.ahead(), name), all }),
    stream: (request, { signal }) => play(tape, request, signal),
  }
}

/** The attempts and how far they are played; shared by all models of a cassette. */
interface Tape {
  /** Those that are yet to be played. */
  ahead(): readonly RecordedAttempt[]
  /** Takes the attempt that answers a request, once, or says why there is none. */
  take(request: LlmRequest): RecordedAttempt | LlmFailure
}

function createTape(attempts: readonly RecordedAttempt[], match: 'exact' | 'loose'): Tape {
  let played = 0
  const ahead = () => attempts.slice(played)
  return {
    ahead,
    take(request) {
      const [next, ...later] = ahead()
      if (!next) return exhausted(attempts.at(-1))
      const difference = match === 'loose' ? undefined : firstDifference(next, request)
      const found = difference ? later.find((attempt) => asksTheSame(attempt, request)) : next
      if (difference && !found) return mismatch(next.place, difference)
      const taken = found ?? next
      played = attempts.indexOf(taken) + 1
      return taken
    },
  }
}

async function* play(tape: Tape, request: LlmRequest, signal: AbortSignal): AsyncGenerator<StreamChunk, void, void> {
  // Nobody hears what is said to a request that was given up; the attempt is left for one that is not.
  if (signal.aborted) return
  const taken = tape.take(request)
  if ('code' in taken) return yield failed(taken)
  for (const chunk of taken.chunks) {
    if (signal.aborted) return
    yield chunk
  }
  const { ending } = taken
  if (ending.kind === 'cancelled') await aborted(signal)
  else if (ending.kind === 'failed') yield failed(ending.failure)
  else if (ending.kind === 'cut') yield failed(cutOff(taken))
}

const failed = (failure: LlmFailure): StreamChunk => ({ type: 'finish', reason: { kind: 'error', failure } })

const nameOf = ({ turn, step, attempt }: AttemptPlace): string => `attempt ${attempt} of step ${step} in turn ${turn}`

const mismatch = (place: AttemptPlace, { path, recorded, asked }: Difference): LlmFailure => ({
  code: 'CASSETTE_MISMATCH',
  message: `The recording was asked something else: for ${nameOf(place)}, ${path} was ${recorded} and is now ${asked}`,
})

const exhausted = (last: RecordedAttempt | undefined): LlmFailure => ({
  code: 'CASSETTE_EXHAUSTED',
  message: `The recording has no more to say: it ends with ${last ? nameOf(last.place) : 'nothing'}, and the model is asked again`,
})

const cutOff = ({ place }: RecordedAttempt): LlmFailure => ({
  code: 'CASSETTE_EXHAUSTED',
  message: `The recording has no more to say: ${nameOf(place)} was cut off here`,
})

/** Resolves when `signal` aborts, at once if it has. */
const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
