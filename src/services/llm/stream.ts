/**
 * An adapter's stream, made to hold its contract: whatever it throws becomes one terminal finish, an end without one
 * is a failure, nothing comes after it, and an abort ends it.
 */
import type { StreamChunk } from '../../log/messages.ts'
import type { LlmRequest } from '../../log/requests.ts'
import type { ModelAdapter } from './adapter.ts'
import { finishOf } from './failure.ts'

const failed = (code: string, message: string): StreamChunk => ({
  type: 'finish',
  reason: { kind: 'error', failure: { code, message } },
})

const closedEarly = (): StreamChunk => failed('STREAM_CLOSED', 'The stream ended before the model said it was done')

const noAdapter = ({ provider, model }: LlmRequest): StreamChunk =>
  failed('NO_ADAPTER', `No adapter for provider "${provider}" and model "${model}": pass it in \`models\``)

/** The chunks of one attempt, for hooks to wrap. Ends without a finish only if `signal` aborted. */
export async function* contained(
  adapter: ModelAdapter | undefined,
  request: LlmRequest,
  signal: AbortSignal,
): AsyncGenerator<StreamChunk, void, void> {
  if (adapter === undefined) {
    yield noAdapter(request)
    return
  }
  try {
    for await (const chunk of adapter.stream(request, { signal })) {
      yield chunk
      if (chunk.type === 'finish') return
    }
  } catch (thrown) {
    if (!signal.aborted) yield { type: 'finish', reason: finishOf(thrown, signal) }
    return
  }
  if (!signal.aborted) yield closedEarly()
}

/** After a chunk: the stream is over, the next chunk waits for something, or it is asked for at once. */
export type AfterChunk = 'over' | Promise<void> | undefined

/** Whoever takes a stream's chunks; says 'over' of a finish. */
export type TakeChunk = (chunk: StreamChunk) => AfterChunk

/** How a stream ended: it was said to be over, the signal aborted, it had no more, or it threw. */
export type StreamEnd =
  | { readonly kind: 'over' }
  | { readonly kind: 'aborted' }
  | { readonly kind: 'exhausted' }
  | { readonly kind: 'threw'; readonly thrown: unknown }

const OVER: StreamEnd = { kind: 'over' }
const ABORTED: StreamEnd = { kind: 'aborted' }
const EXHAUSTED: StreamEnd = { kind: 'exhausted' }

/**
 * Opens a stream and gives `take` each chunk, one at a time, until it ends. An abort ends it at once, also a stream that
 * does not heed it; such a one is told to end, and left. No generator and no race: every delta of every answer comes here.
 * @throws what `take` throws, or what it waits for
 */
export function drain(
  open: () => AsyncIterable<StreamChunk>,
  signal: AbortSignal,
  take: TakeChunk,
): Promise<StreamEnd> {
  if (signal.aborted) return Promise.resolve(ABORTED)
  let iterator: AsyncIterator<StreamChunk>
  try {
    iterator = iteratorOf(open())
  } catch (thrown) {
    return Promise.resolve({ kind: 'threw', thrown })
  }
  return new Promise((resolve, reject) => {
    let left = false
    const leave = (end?: StreamEnd): void => {
      if (left) return
      left = true
      signal.removeEventListener('abort', abort)
      if (end !== EXHAUSTED) tellToEnd(iterator)
    }
    const abort = (): void => {
      leave()
      resolve(ABORTED)
    }
    const ended = (end: StreamEnd): void => {
      leave(end)
      resolve(end)
    }
    const failed = (thrown: unknown): void => {
      leave()
      reject(thrown)
    }
    signal.addEventListener('abort', abort, { once: true })
    walk(iterator, take, () => left).then(ended, failed)
  })
}

async function walk(iterator: AsyncIterator<StreamChunk>, take: TakeChunk, left: () => boolean): Promise<StreamEnd> {
  while (true) {
    let chunk: StreamChunk
    try {
      const result = await iterator.next()
      // Such as a number, which would have neither.
      if (typeof result !== 'object') throw new TypeError(`The stream gave ${String(result)}, which is no result`)
      if (result.done) return EXHAUSTED
      chunk = result.value
    } catch (thrown) {
      return { kind: 'threw', thrown }
    }
    if (left()) return ABORTED
    const after = take(chunk)
    if (after === 'over') return OVER
    if (after !== undefined) await after
    if (left()) return ABORTED
  }
}

/** As `for await` finds it: also of a plain iterable, of chunks or of promises of them. */
function iteratorOf(chunks: AsyncIterable<StreamChunk> | Iterable<StreamChunk>): AsyncIterator<StreamChunk> {
  return Symbol.asyncIterator in chunks ? chunks[Symbol.asyncIterator]() : oneByOne(chunks)
}

async function* oneByOne(chunks: Iterable<StreamChunk>): AsyncGenerator<StreamChunk, void, void> {
  yield* chunks
}

/** Not awaited: nothing comes after the end, and one that hangs would hang the turn. What it fails with is nobody's. */
function tellToEnd(iterator: AsyncIterator<StreamChunk>): void {
  try {
    Promise.resolve(iterator.return?.()).catch(() => {})
  } catch {
    // Only the adapter's own `return` can land here.
  }
}

/** As `contained`, given chunk by chunk to whoever takes them: the same contract, and no generator between. */
export async function drainContained(
  adapter: ModelAdapter | undefined,
  request: LlmRequest,
  { signal, take }: { readonly signal: AbortSignal; readonly take: TakeChunk },
): Promise<void> {
  if (adapter === undefined) {
    take(noAdapter(request))
    return
  }
  const end = await drain(() => adapter.stream(request, { signal }), signal, take)
  if (signal.aborted) return
  if (end.kind === 'threw') take({ type: 'finish', reason: finishOf(end.thrown, signal) })
  if (end.kind === 'exhausted') take(closedEarly())
}
