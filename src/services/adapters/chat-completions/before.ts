/** Waiting for what may never come: a body that Node cannot inflate neither ends nor heeds an abort. */
import { LlmError } from '../../errors.ts'

/** What `work` gives, or a rejection when `signal` aborts first; `late` gets what comes after that. */
export function before<T>(signal: AbortSignal, work: Promise<T>, late: (value: T) => void = () => {}): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(new LlmError(LEFT))
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
    work.then(
      (value) => (signal.aborted ? late(value) : resolve(value)),
      // After an abort nobody hears it: the promise is settled.
      reject,
    )
    work.finally(() => signal.removeEventListener('abort', abort)).catch(() => {})
  })
}

/** Never shown: it stands for the abort or the limit that caused it. */
const LEFT = { message: 'The request was left', code: 'ABORTED' }
