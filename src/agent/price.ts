/** What a limit on cost needs: the model's price, asked for before a session is taken and anything is spent. */
import { either } from '../services/either.ts'
import { LlmError } from '../services/errors.ts'
import { assertPriced } from '../services/llm/request.ts'
import type { AgentOptions } from './options.ts'

/** As long as an adapter of ours waits for its server by default. */
const PREPARE_TIMEOUT_MS = 60_000

/** @throws InvalidOption for a model without one; LlmError TIMEOUT; what the adapter's `prepare` throws. */
export async function checkPrice({ model: adapter, signal }: Pick<AgentOptions, 'model' | 'signal'>): Promise<void> {
  const { provider, model } = adapter
  const config = { provider, model }
  const overdue = new AbortController()
  const ends = either(overdue.signal, ...(signal === undefined ? [] : [signal]))
  const timer = setTimeout(() => overdue.abort(tooLate(adapter)), PREPARE_TIMEOUT_MS)
  try {
    const prepared = adapter.prepare?.(config, ends.signal) ?? { config }
    assertPriced(await Promise.race([prepared, rejection(ends.signal)]))
  } finally {
    clearTimeout(timer)
    ends.release()
  }
}

/** Also for an adapter that does not heed its signal. */
const rejection = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })

const tooLate = ({ provider, model }: AgentOptions['model']): LlmError =>
  new LlmError({
    code: 'TIMEOUT',
    message: `"${model}" of "${provider}" did not say what it costs within ${PREPARE_TIMEOUT_MS} ms: give its adapter a price, or set no limit on cost`,
  })
