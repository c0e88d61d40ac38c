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

/** The chunks of one attempt. Ends without a finish only if `signal` aborted. */
export async function* contained(
  adapter: ModelAdapter | undefined,
  request: LlmRequest,
  signal: AbortSignal,
): AsyncGenerator<StreamChunk, void, void> {
  if (adapter === undefined) {
    const { provider, model } = request
    yield failed('NO_ADAPTER', `No adapter for provider "${provider}" and model "${model}": pass it in \`models\``)
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
  if (!signal.aborted) yield failed('STREAM_CLOSED', 'The stream ended before the model said it was done')
}

/** What became of a chunk: the stream is over, or it waits until there is room. */
export type Taken = 'over' | Promise<void> | undefined

/**
 * Gives `take` each chunk until it says that the stream is over, the stream ends, or the abort, also of a stream that
 * does not heed it; such a stream is told to end, and left. One promise a chunk and no generator between: every delta
 * of every answer comes this way. Rejects with what `take` or the stream throws.
 */
export function drain(chunks: AsyncIterable<StreamChunk>, signal: AbortSignal, take: (chunk: StreamChunk) => Taken): Promise<void> {
  return new Promise((resolve, reject) => {
    const iterator = chunks[Symbol.asyncIterator]()
    let left = false
    const leave = (): void => {
      left = true
      signal.removeEventListener('abort', abort)
      // Told to end, and not awaited: nothing comes after a finish, and one that hangs would hang the turn.
      iterator.return?.()?.catch(() => {})
    }
    const abort = (): void => {
      leave()
      resolve()
    }
    const fail = (thrown: unknown): void => {
      if (left) return
      leave()
      reject(thrown)
    }
    const ask = (): void => {
      if (!left) Promise.resolve(iterator.next()).then(got, fail)
    }
    const got = (result: IteratorResult<StreamChunk>): void => {
      if (left) return
      if (result.done) return abort()
      try {
        const taken = take(result.value)
        if (taken === undefined) ask()
        else if (taken === 'over') abort()
        else taken.then(ask, fail)
      } catch (thrown) {
        fail(thrown)
      }
    }
    if (signal.aborted) return abort()
    signal.addEventListener('abort', abort, { once: true })
    ask()
  })
}

/** As `contained`, told chunk by chunk: the same contract, and no generator between the adapter and who takes it. */
export async function drainContained(
  adapter: ModelAdapter | undefined,
  request: LlmRequest,
  signal: AbortSignal,
  take: (chunk: StreamChunk) => Taken,
): Promise<void> {
  if (adapter === undefined) return drain(contained(adapter, request, signal), signal, take)
  let finished = false
  let own = false
  const watched = (chunk: StreamChunk): Taken => {
    try {
      const taken = take(chunk)
      if (chunk.type === 'finish') finished = true
      return chunk.type === 'finish' ? 'over' : taken
    } catch (thrown) {
      own = true
      throw thrown
    }
  }
  let stream: AsyncIterable<StreamChunk>
  try {
    stream = adapter.stream(request, { signal })
    await drain(stream, signal, watched)
  } catch (thrown) {
    if (own) throw thrown
    if (!signal.aborted) take({ type: 'finish', reason: finishOf(thrown, signal) })
    return
  }
  if (!finished && !signal.aborted) take(failed('STREAM_CLOSED', 'The stream ended before the model said it was done'))
}
