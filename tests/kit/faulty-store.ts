/**
 * A store over another one that behaves as a far one does: requests and answers take a few turns of the event loop and
 * overtake each other, answers get lost, calls fail. Everything it draws comes from the seed; nothing waits on a clock.
 */
import { StoreFailure } from '../../src/log/errors.ts'
import type { LogStore, Ownership, Resting, RestingOwner } from '../../src/log/store.ts'

/**
 * `fail`: refused before it reaches the store. `lose`: done, but the answer never comes (a stream breaks after some
 * items). `hang`: never reaches the store, and is never answered. `late`: done, and answered once `answerLate` says so.
 */
export type Fault = 'fail' | 'lose' | 'hang' | 'late'

export type Operation =
  | 'acquire'
  | 'append'
  | 'checkpoint'
  | 'keep'
  | 'release'
  | 'commands'
  | 'read'
  | 'pages'
  | 'subscribe'
  | 'post'
  | 'outcome'
  | 'list'
  | 'header'
  | 'delete'

export interface Faults {
  readonly seed: number
  /** The most turns of the event loop a request, and again its answer, is late. 3 by default. */
  readonly maxTurns?: number
  /** How often `acquire`, `append` and `post` fail or lose their answer, each from 0 to 1. Never by default. */
  readonly rates?: { readonly fail?: number; readonly lose?: number }
}

export interface FaultyStore extends LogStore {
  /** Makes one call of `operation` meet `fault`: the next, or the one after `skip` more. Faults not met yet add up. */
  script(operation: Operation, fault: Fault, skip?: number): void
  /** Lets all answers come that are late. */
  answerLate(): void
}

/** Wraps `inner`. Injected errors are `StoreFailure`: `io` for `fail`, `timeout` for `lose`. Closing closes `inner`. */
export function faultyStore(inner: LogStore, faults: Faults): FaultyStore {
  const wire = openWire(faults)
  const { pages, readNow } = inner
  const wrapped = new WeakMap<Ownership, Ownership>()
  const wrap = (owner: Ownership): Ownership => {
    const far = owned(wire, owner)
    wrapped.set(far, owner)
    return far
  }
  const rest = (ownership: Ownership, told: RestingOwner): Resting | undefined => {
    const near = wrapped.get(ownership)
    const resting = near && inner.rest?.(near, told)
    return (
      resting && {
        wake: (head) => wrap(resting.wake(head)),
        release: () => wire.call('release', () => resting.release()),
      }
    )
  }
  return {
    script: wire.script,
    answerLate: wire.answerLate,
    acquire: async (id, options) => wrap(await wire.call('acquire', () => inner.acquire(id, options))),
    read: (id, options) => wire.stream('read', () => inner.read(id, options)),
    ...(pages && { pages: (id, options) => wire.stream('pages', () => pages(id, options)) }),
    // What does not wait is not far away.
    ...(readNow && { readNow }),
    ...(inner.rest && { rest }),
    subscribe: (id, options) => wire.stream('subscribe', () => inner.subscribe(id, options)),
    post: (id, command) => wire.call('post', () => inner.post(id, command)),
    outcome: (id, command, signal) => wire.call('outcome', () => inner.outcome(id, command, signal)),
    list: (options) => wire.stream('list', () => inner.list(options)),
    header: (id) => wire.call('header', () => inner.header(id)),
    delete: (id) => wire.call('delete', () => inner.delete(id)),
    [Symbol.asyncDispose]: () => inner[Symbol.asyncDispose](),
  }
}

const owned = (wire: Wire, owner: Ownership): Ownership => ({
  header: owner.header,
  epoch: owner.epoch,
  head: owner.head,
  lost: owner.lost,
  ...(owner.keepEvery === undefined ? {} : { keepEvery: owner.keepEvery }),
  append: (events, options) => wire.call('append', () => owner.append(events, options)),
  ...checkpoints(wire, owner),
  commands: (signal) => wire.stream('commands', () => owner.commands(signal)),
  release: () => wire.call('release', () => owner.release()),
})

function checkpoints(
  wire: Wire,
  { checkpoint, checkpointNow, keep }: Ownership,
): Pick<Ownership, 'checkpoint' | 'checkpointNow' | 'keep'> {
  if (checkpoint === undefined || keep === undefined) return {}
  return {
    ...(checkpointNow && { checkpointNow }),
    checkpoint: () => wire.call('checkpoint', () => checkpoint()),
    keep: (kept) => wire.call('keep', () => keep(kept)),
  }
}

interface Wire {
  script: FaultyStore['script']
  answerLate: FaultyStore['answerLate']
  call<T>(operation: Operation, work: () => Promise<T>): Promise<T>
  stream<T>(operation: Operation, items: () => AsyncIterable<T>): AsyncIterable<T>
}

function openWire({ seed, maxTurns = 3, rates = {} }: Faults): Wire {
  const random = randomFrom(seed)
  const scripted: { operation: Operation; fault: Fault; skip: number }[] = []
  const held: (() => void)[] = []

  const late = async (): Promise<void> => {
    for (let turns = Math.floor(random() * (maxTurns + 1)); turns > 0; turns -= 1) await eventLoopTurn()
  }

  const meet = (operation: Operation): Fault | undefined => {
    const due = scripted.find((entry) => entry.operation === operation && entry.skip === 0)
    for (const entry of scripted) if (entry.operation === operation && entry.skip > 0) entry.skip -= 1
    if (due === undefined) return drawn(operation)
    scripted.splice(scripted.indexOf(due), 1)
    return due.fault
  }

  const drawn = (operation: Operation): Fault | undefined => {
    if (operation !== 'acquire' && operation !== 'append' && operation !== 'post') return undefined
    const { fail = 0, lose = 0 } = rates
    const draw = random()
    if (draw < fail) return 'fail'
    return draw < fail + lose ? 'lose' : undefined
  }

  const send = async (operation: Operation, fault: Fault | undefined): Promise<void> => {
    await late()
    if (fault === 'fail') throw new StoreFailure('io', `${operation} failed on its way to the store (injected)`)
    if (fault === 'hang') await new Promise(() => {})
  }

  return {
    script(operation, fault, skip = 0) {
      scripted.push({ operation, fault, skip })
    },
    answerLate() {
      for (const answer of held.splice(0)) answer()
    },
    async call(operation, work) {
      const fault = meet(operation)
      await send(operation, fault)
      const [answer] = await Promise.allSettled([work()])
      await late()
      if (fault === 'late') await new Promise<void>((resolve) => held.push(resolve))
      if (fault === 'lose') throw noAnswer(operation)
      if (answer.status === 'rejected') throw answer.reason
      return answer.value
    },
    async *stream(operation, items) {
      const fault = meet(operation)
      await send(operation, fault)
      if (fault === 'late') await new Promise<void>((resolve) => held.push(resolve))
      let left = fault === 'lose' ? Math.floor(random() * 8) : Number.POSITIVE_INFINITY
      for await (const item of items()) {
        if (left-- === 0) throw noAnswer(operation)
        // Now and then only: a long log would take all day.
        if (random() < 1 / 16) await late()
        yield item
      }
      if (fault === 'lose') throw noAnswer(operation)
    },
  }
}

const noAnswer = (operation: Operation): StoreFailure =>
  new StoreFailure('timeout', `No answer to ${operation} came back from the store (injected)`)

const eventLoopTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Numbers from 0 to 1, the same for the same seed (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}
