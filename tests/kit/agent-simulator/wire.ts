/**
 * The store as one process has it: far away. Requests and answers are things the scheduler lets happen, they may get
 * lost or fail on the way, and a process that died sends and hears nothing.
 */
import { type PawlError, StoreFailure, type StoreFailureReason } from '../../../src/log/errors.ts'
import type { LogStore, Ownership, Resting, RestingOwner } from '../../../src/log/store.ts'
import type { Truth } from './mirror.ts'
import { never, type SimProcess } from './world.ts'

/** How often requests meet what, from 0 to 1. */
export interface StoreFaults {
  readonly fail: number
  readonly lose: number
  readonly hang: number
}

type Fault = keyof StoreFaults

interface Line {
  readonly truth: Truth
  readonly process: SimProcess
  readonly faults: StoreFaults
  readonly onRobbed: (id: string) => void
  /** The ownerships that this process was given. */
  readonly held: WeakMap<Ownership, Held>
}

/** A session that is owned, whether its owner rests or not. */
interface Tenure {
  isOver: boolean
}

interface Held {
  readonly owner: Ownership
  readonly tenure: Tenure
  /** A command is on its way. */
  arriving: boolean
  isVoid: boolean
}

/** Connects a process to the store of the world; `onRobbed` is told at once what the process learns some time later. */
export function wire(
  truth: Truth,
  process: SimProcess,
  faults: StoreFaults,
  onRobbed: (id: string) => void = () => {},
): LogStore {
  const line: Line = { truth, process, faults, onRobbed, held: new WeakMap() }
  const { store: inner, sessions } = truth
  return {
    acquire: (id, options) =>
      call(line, `${options?.create?.parentSession === undefined ? 'acquire' : 'found'} ${id}`, async () => {
        const owner = await inner.acquire(id, options)
        truth.found(owner.header)
        if (options?.steal) truth.world.count('steals asked')
        const release = (): void => void owner.release()
        process.releases.add(release)
        if (!process.alive) release()
        process.knows(id, owner.head)
        return owned(line, owner)
      }),
    async *read(id, options) {
      const fault = meet(line, 'read')
      await truth.world.turn(process, `reads ${id}`)
      if (fault === 'hang') await never()
      let left = fault === undefined ? Number.POSITIVE_INFINITY : 2
      for await (const event of inner.read(id, options)) {
        if (left-- === 0) throw failure('io', 'the read')
        process.knows(id, event.seq + 1)
        yield event
      }
    },
    async *subscribe(id, options) {
      for await (const event of inner.subscribe(id, options)) {
        const went = await truth.world.turn(process, `hears of ${id}:${event.seq}`, { signal: options.signal })
        if (went === 'aborted') return
        process.knows(id, event.seq + 1)
        yield event
      }
    },
    // What is read on the spot costs the world no time.
    ...(inner.readNow && { readNow: (id, options) => inner.readNow?.(id, options) ?? [] }),
    rest: (ownership, told) => rest(line, ownership, told),
    post: (id, command) =>
      call(line, `post ${command.kind} ${command.id} to ${id}`, () => inner.post(id, command), true),
    async outcome(id, command, signal) {
      const outcome = await inner.outcome(id, command, signal)
      await truth.world.turn(process, `hears what became of ${command}`)
      return outcome
    },
    async *list(options) {
      await truth.world.turn(process, 'lists sessions')
      yield* inner.list(options)
    },
    header: (id) => call(line, `header of ${id}`, () => inner.header(id)),
    delete: (id) =>
      call(line, `delete ${id}`, async () => {
        await inner.delete(id)
        sessions.delete(id)
      }),
    // The store is the world's, not the process's.
    async [Symbol.asyncDispose]() {},
  }
}

/** As the process learns it; undefined while a command is on its way to it. */
function rest(line: Line, ownership: Ownership, told: RestingOwner): Resting | undefined {
  const { truth, process, held } = line
  const hold = held.get(ownership)
  if (hold === undefined || hold.arriving) return undefined
  const { id } = ownership.header
  /** As who serves commands hears of their end. */
  const end = (): void => void noMore(line, hold.tenure, id)
  const resting = truth.store.rest?.(hold.owner, {
    onPosted: () => told.onPosted(),
    async onLost(reason) {
      line.onRobbed(id)
      queueMicrotask(end)
      await truth.world.turn(process, `learns that ${id} is lost`)
      told.onLost(reason)
    },
  })
  if (resting === undefined) return undefined
  hold.isVoid = true
  process.releases.add(() => void resting.release())
  truth.world.count('hibernations')
  return {
    wake: (head) => owned(line, resting.wake(head), hold.tenure),
    release: () =>
      call(line, `${wordFor(ownership)} ${id}`, async () => {
        await resting.release()
        end()
      }),
  }
}

/** A child is left by the process that made it, too. */
const wordFor = ({ header }: Ownership): string => (header.parentSession === undefined ? 'release' : 'leave')

/** Once for each time that a session is owned. */
async function noMore({ truth, process }: Line, tenure: Tenure, id: string): Promise<void> {
  if (tenure.isOver) return
  tenure.isOver = true
  await truth.world.turn(process, `no more commands for ${id}`)
}

function owned(line: Line, owner: Ownership, tenure: Tenure = { isOver: false }): Ownership {
  const { truth, process } = line
  const { id } = owner.header
  const hold: Held = { owner, tenure, arriving: false, isVoid: false }
  const lost = new AbortController()
  // Whoever loses a session learns of it some time later.
  owner.lost.addEventListener('abort', async () => {
    line.onRobbed(id)
    await truth.world.turn(process, `learns that ${id} is lost`)
    lost.abort(owner.lost.reason)
  })
  const ownership: Ownership = {
    header: owner.header,
    epoch: owner.epoch,
    head: owner.head,
    ...(owner.posted === undefined ? {} : { posted: owner.posted }),
    lost: lost.signal,
    async append(events, options) {
      const first = events[0]?.seq ?? options.expectedSeq
      const write = async (): Promise<void> => {
        await owner.append(events, options)
        truth.sessions.get(id)?.written(events)
        for (const take of options.takes ?? []) truth.taken.add(take.id)
        truth.world.count('appends')
      }
      const words = events.length === 0 ? 'takes only' : [...new Set(events.map(({ type }) => type))].join(' ')
      // A child is planted by its parent's process, whose own log goes on whatever becomes of that.
      const planted = first <= (owner.header.seedLength ?? -1)
      await call(line, `${planted ? 'plant' : 'append'} ${id}:${first}+${events.length} (${words})`, write, true)
      process.knows(id, first + events.length)
    },
    ...(owner.keepEvery === undefined ? {} : { keepEvery: owner.keepEvery }),
    async checkpoint() {
      const kept = await call(line, `checkpoint ${id}`, async () => owner.checkpoint?.())
      if (kept !== undefined) truth.world.count('openings from a checkpoint')
      return kept
    },
    checkpointNow: () => owner.checkpointNow?.(),
    keep: (checkpoint) => call(line, `keep ${id}:${checkpoint.seq}`, async () => owner.keep?.(checkpoint), true),
    async *commands(signal) {
      for await (const command of owner.commands(signal)) {
        hold.arriving = true
        await truth.world.turn(process, `${command.kind} ${command.id} arrives at ${id}`)
        hold.arriving = false
        yield command
      }
      if (!hold.isVoid) await noMore(line, tenure, id)
    },
    release: () => call(line, `${wordFor(owner)} ${id}`, () => owner.release()),
  }
  line.held.set(ownership, hold)
  return ownership
}

/** A request and its answer, and what may become of them. */
async function call<T>(line: Line, label: string, work: () => Promise<T>, writes = false): Promise<T> {
  const { process, truth } = line
  const { world } = truth
  if (!process.alive) return never()
  const [operation = ''] = label.split(' ')
  const fault = meet(line, operation)
  const late = (): void => void work().catch(() => {})
  const mayArrive = writes && fault !== 'fail' && fault !== 'hang'
  await world.turn(process, `${label}${fault === undefined ? '' : `, to ${fault}`}`, mayArrive ? { dying: late } : {})
  if (fault === 'fail') throw failure(world.tape.pick(REASONS), operation)
  if (fault === 'hang') return never()
  const [answer] = await Promise.allSettled([work()])
  await world.turn(process, `${operation} is answered`)
  if (fault === 'lose') throw failure('timeout', operation)
  if (answer.status === 'rejected') throw answer.reason
  return answer.value
}

/** Whoever posts waits for as long as it likes; an agent has a limit on whatever it asks. */
const WITHOUT_LIMIT = 'post'

const REASONS: readonly StoreFailureReason[] = ['full', 'io', 'locked']

const failure = (reason: StoreFailureReason, operation: string): PawlError =>
  new StoreFailure(reason, `The simulated store did not answer ${operation}`)

function meet({ truth: { world }, faults }: Line, operation: string): Fault | undefined {
  if (world.calm) return undefined
  const drawn = world.tape.draw()
  let left = 1
  for (const kind of ['fail', 'lose', 'hang'] as const) {
    left -= kind === 'hang' && operation === WITHOUT_LIMIT ? 0 : faults[kind]
    if (drawn < left) continue
    world.count(`fault store ${operation} ${kind}`)
    return kind
  }
  return undefined
}
