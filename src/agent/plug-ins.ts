/** Plug-ins: each is called once when its agent is made, and what it gives is called once when that closes. */
import { type Clock, MAX_TIMER_MS } from '../services/clock.ts'
import { renderCauses } from '../services/llm/failure.ts'

/** What a plug-in gives to be called at the end. */
export type Disposer = () => void | Promise<void>

export interface DisposeOptions {
  readonly clock: Clock
  /** ms that each has. */
  readonly settleTimeoutMs: number
}

/** One after the other. Who does not come to an end is left behind: closing waits for nobody for ever. */
export async function disposeAll(disposers: readonly Disposer[], options: DisposeOptions): Promise<void> {
  for (const dispose of disposers) await contained('disposing a plug-in', () => settled(dispose(), options))
}

/** @throws what `work` rejects with; an Error when it takes too long */
async function settled(work: void | Promise<void>, { clock, settleTimeoutMs }: DisposeOptions): Promise<void> {
  if (work === undefined) return
  let timer: unknown
  const overdue = new Promise<never>((_, reject) => {
    const late = (): void => reject(new Error(`it took more than ${settleTimeoutMs} ms and is left behind`))
    timer = clock.setTimeout(late, Math.min(settleTimeoutMs, MAX_TIMER_MS))
  })
  try {
    await Promise.race([work, overdue])
  } finally {
    clock.clearTimeout(timer)
  }
}

/** What a plug-in throws changes no outcome; it is a warning of the process. */
export async function contained(what: string, run: () => void | Promise<void>): Promise<void> {
  try {
    await run()
  } catch (thrown) {
    process.emitWarning(`${what} failed: ${renderCauses(thrown)}`, 'PawlPluginWarning')
  }
}
