/** Actor: waits for a retry's time. What is left of the delay after a restart, and never more than all of it. */
import { type Service, serviceActor } from './actor.ts'
import { MAX_TIMER_MS } from './clock.ts'
import type { WaitInput } from './inputs.ts'
import type { AgentRuntime } from './runtime.ts'
import type { Verdict } from './verdicts.ts'

export const wait = serviceActor<WaitInput>(run, waited)

function waited({ turn, step, attempt }: WaitInput): Verdict {
  return { type: 'verdict.waited', turn, step, attempt }
}

async function run({ input, runtime, stopped }: Service<WaitInput>): Promise<Verdict> {
  const left = input.at + input.delayMs - runtime.clock.now()
  // What came due while nobody waited waits for no timer: that may be a clock's which stands still.
  if (input.delayMs > 0 && left <= 0) return waited(input)
  await sleep(runtime, Math.min(input.delayMs, Math.max(0, left)), stopped.signal)
  return waited(input)
}

/** Resolves after `ms`, in timers no longer than one may be; never after `stopped`, whose timer is cleared. */
export function sleep({ clock }: Pick<AgentRuntime, 'clock'>, ms: number, stopped: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    let timer: unknown
    const arm = (left: number): void => {
      const now = Math.min(left, MAX_TIMER_MS)
      timer = clock.setTimeout(() => (left > now ? arm(left - now) : done()), now)
    }
    const done = (): void => {
      stopped.removeEventListener('abort', stop)
      resolve()
    }
    const stop = (): void => clock.clearTimeout(timer)
    if (stopped.aborted) return
    stopped.addEventListener('abort', stop, { once: true })
    arm(ms)
  })
}
