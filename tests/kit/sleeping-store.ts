/** A store that tells when its owners rest and wake: whether an agent sleeps is nothing that it shows. */
import type { LogStore, Ownership, Resting, RestingOwner } from '../../src/log/store.ts'

export interface SleepingStore extends LogStore {
  /** The sessions whose owners rest. */
  readonly asleep: ReadonlySet<string>
  /** How often an owner began to rest, and how often one was woken. */
  readonly rests: () => number
  readonly wakes: () => number
}

export function sleepingStore(inner: LogStore): SleepingStore {
  const asleep = new Set<string>()
  let [rests, wakes] = [0, 0]
  const rest = (ownership: Ownership, owner: RestingOwner): Resting | undefined => {
    const { id } = ownership.header
    const resting = inner.rest?.(ownership, owner)
    if (resting === undefined) return undefined
    rests += 1
    asleep.add(id)
    return {
      wake(head) {
        wakes += 1
        asleep.delete(id)
        return resting.wake(head)
      },
      release() {
        asleep.delete(id)
        return resting.release()
      },
    }
  }
  return { ...inner, rest, asleep, rests: () => rests, wakes: () => wakes }
}
