/**
 * A store that answers in time or fails: over another one, whose answers each have a limit. An ownership that comes too
 * late is given back. What waits for others, `subscribe`, `outcome` and `commands`, ends by its signal, and an
 * ownership's own answers are its owner's to wait for.
 */
import { inTime, itemsInTime, type Patience } from '../patience.ts'
import type { LogStore } from '../store.ts'

/** The operations of `store` with `patience` for each answer. Closing it closes `store`. */
export function timedStore(store: LogStore, patience: Patience): LogStore {
  const { pages, readNow, rest } = store
  return {
    acquire: (id, options) =>
      inTime(store.acquire(id, options), `acquire session "${id}"`, patience, { late: (owner) => owner.release() }),
    read: (id, options) => itemsInTime(store.read(id, options), `read session "${id}"`, patience),
    ...(pages && { pages: (id, options) => itemsInTime(pages(id, options), `read session "${id}"`, patience) }),
    // What does not wait cannot be late.
    ...(readNow && { readNow }),
    ...(rest && { rest }),
    subscribe: (id, options) => store.subscribe(id, options),
    post: (id, command) => inTime(store.post(id, command), `take a command for session "${id}"`, patience),
    outcome: (id, command, signal) => store.outcome(id, command, signal),
    list: (options) => itemsInTime(store.list(options), 'list its sessions', patience),
    header: (id) => inTime(store.header(id), `look up session "${id}"`, patience),
    delete: (id) => inTime(store.delete(id), `delete session "${id}"`, patience),
    [Symbol.asyncDispose]: () => inTime(Promise.resolve(store[Symbol.asyncDispose]()), 'close', patience),
  }
}
