/** Waiting for what must happen, in real time: woken by whatever happens, and never for longer than patience lasts. */
import type { Agent } from '../../agent.ts'

/** Something that tells when something happens to it. */
interface Changing {
  /** Counts whatever happens. */
  changes(): number
  /** Resolves with the next thing that happens after there were that many. */
  changed(since: number): Promise<void>
}

/** Looks again whenever something happened. Undefined if nothing more happens for `patienceMs` and it was not found. */
export async function waitUntil<T>(
  life: Changing,
  patienceMs: number,
  look: () => Promise<T | undefined>,
): Promise<T | undefined> {
  for (;;) {
    const seen = life.changes()
    const found = await look()
    if (found !== undefined) return found
    const isChanged =
      life.changes() > seen ||
      (await within(
        patienceMs,
        life.changed(seen).then(() => true),
      ))
    if (!isChanged) return undefined
  }
}

/** What it resolves with; undefined if that takes longer. */
export function within<T>(ms: number, result: Promise<T>): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(undefined), ms)
    result.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

/** Whatever is only a matter of microtasks has happened then. */
export const immediate = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** All that was recorded is durable, and nothing more happened while that was waited for. */
export async function isStill({
  agent,
  changes,
}: Pick<Changing, 'changes'> & { readonly agent: Pick<Agent, 'session'> }): Promise<boolean> {
  const seen = changes()
  await agent.session.flush()
  await immediate()
  // What was recorded meanwhile shows as a change when it is durable.
  await agent.session.flush()
  return changes() === seen
}
