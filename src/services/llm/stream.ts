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

/** Chunks until the abort, even from a stream that does not heed it; such a stream is told to end, and left. */
export async function* untilAborted(
  chunks: AsyncIterable<StreamChunk>,
  signal: AbortSignal,
): AsyncGenerator<StreamChunk, void, void> {
  const iterator = chunks[Symbol.asyncIterator]()
  let abort = (): void => {}
  const aborted = new Promise<'aborted'>((resolve) => {
    abort = () => resolve('aborted')
  })
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  try {
    while (true) {
      const next = iterator.next()
      const result = await Promise.race([next, aborted])
      if (result === 'aborted') {
        // Nobody awaits what the stream still does; what it says then is no failure of anything.
        next.catch(() => {})
        return
      }
      if (result.done) return
      yield result.value
    }
  } finally {
    signal.removeEventListener('abort', abort)
    // Told to end, and not awaited: nothing comes after a finish, and one that hangs would hang the turn.
    iterator.return?.()?.catch(() => {})
  }
}
