/**
 * A simulated world: processes, what each of them waits for, and the scheduler that says which of it happens next.
 * Between two steps all code has come to a stand, so whose code runs in a step is known, and a crash is between steps.
 */
import { WorldClock } from './clock.ts'
import type { Tape } from './tape.ts'

/** What is told of a promise that broke: a stable name, and the facts. */
export interface Breach {
  readonly rule: string
  readonly message: string
}

/** Something that can happen: an answer that arrives, a chunk, a tool that settles. */
interface Pending {
  readonly process: SimProcess
  readonly label: string
  readonly go: () => void
  /** Already on its way when its process dies: whether it happens all the same is drawn. */
  readonly dying: (() => void) | undefined
}

export type Went = 'went' | 'aborted'

export interface TurnOptions {
  /** Ends the waiting. */
  readonly signal?: AbortSignal
  readonly dying?: () => void
}

/** One process of the world: what runs in it dies with it. */
export class SimProcess {
  readonly name: string
  alive = true
  /** For each session the next seq that this process was told is durable. */
  readonly known = new Map<string, number>()
  /** Gives back what it holds of the store. */
  readonly releases = new Set<() => void>()

  constructor(name: string) {
    this.name = name
  }

  knows(session: string, head: number): void {
    this.known.set(session, Math.max(this.known.get(session) ?? 0, head))
  }
}

/** Never settles. */
export const never = <T>(): Promise<T> => new Promise<T>(() => {})

export class World {
  readonly tape: Tape
  readonly clock = new WorldClock()
  /** One line an event. */
  readonly story: string[] = []
  readonly breaches: Breach[] = []
  /** How often what happened. */
  readonly counts = new Map<string, number>()
  /** From here on nothing fails, hangs or misbehaves any more: the world is being led to rest. */
  calm = false
  /** Whose code runs. */
  running: SimProcess | undefined
  #pending: Pending[] = []
  #processes = 0
  #ids = 0

  constructor(tape: Tape) {
    this.tape = tape
  }

  spawn(name: string): SimProcess {
    return new SimProcess(`${name}${++this.#processes}`)
  }

  id(prefix: string): string {
    return `${prefix}${++this.#ids}`
  }

  tell(line: string): void {
    this.story.push(line)
  }

  count(what: string, times = 1): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + times)
  }

  breach(rule: string, message: string): void {
    this.breaches.push({ rule, message })
    this.tell(`!! ${rule}: ${message}`)
  }

  must(holds: boolean, rule: string, message: () => string): void {
    if (!holds) this.breach(rule, message())
  }

  /** A misbehaviour that may happen as often as that, and is counted when it does. */
  mishap(kind: string, probability: number): boolean {
    if (this.calm || !this.tape.chance(probability)) return false
    this.count(`fault ${kind}`)
    return true
  }

  /** Waits until the scheduler lets it go on; for ever in a process that died. */
  turn(process: SimProcess, label: string, { signal, dying }: TurnOptions = {}): Promise<Went> {
    if (!process.alive) return never()
    if (signal?.aborted) return Promise.resolve('aborted')
    return new Promise((resolve) => {
      const abort = (): void => {
        this.#pending = this.#pending.filter((other) => other !== item)
        resolve('aborted')
      }
      const go = (): void => {
        signal?.removeEventListener('abort', abort)
        resolve('went')
      }
      const item: Pending = { process, label, go, dying }
      signal?.addEventListener('abort', abort, { once: true })
      this.#pending.push(item)
    })
  }

  get waiting(): number {
    return this.#pending.length
  }

  /** What the things that wait are, for a report. */
  labels(): readonly string[] {
    return this.#pending.map(({ process, label }) => `${process.name}: ${label}`)
  }

  /** One thing that waits happens: the oldest, or any. */
  async stepPending(): Promise<void> {
    const [item] = this.#pending.splice(this.tape.below(Math.min(256, this.#pending.length)), 1)
    if (item === undefined) return
    this.tell(`${item.process.name}: ${item.label}`)
    await this.run(item.process, item.go)
  }

  /** The next timer fires, and time has moved on. */
  async stepTimer(): Promise<void> {
    const timer = this.clock.next()
    if (timer === undefined) return
    const owner = timer.owner instanceof SimProcess ? timer.owner : undefined
    this.tell(`${owner?.name ?? 'nobody'}: a timer of ${Math.round(timer.ms)} ms fires`)
    this.count('timers')
    await this.run(owner, timer.fire)
  }

  /** Runs code of a process until all of it has come to a stand. */
  async run(process: SimProcess | undefined, work: () => void): Promise<void> {
    this.running = process
    try {
      work()
    } catch (error) {
      this.breach('UNCAUGHT', error instanceof Error ? `${error.stack}` : String(error))
    }
    await new Promise((resolve) => setImmediate(resolve))
    this.running = undefined
  }

  /** Dies between two steps: nothing of it runs again, but what it had sent may still arrive. */
  async kill(process: SimProcess): Promise<void> {
    this.tell(`${process.name} dies`)
    this.count('crashes')
    process.alive = false
    this.clock.dropOf(process)
    const left = this.#pending.filter((item) => item.process === process)
    this.#pending = this.#pending.filter((item) => item.process !== process)
    for (const { label, dying } of left) {
      if (dying === undefined || !this.tape.chance(0.5)) continue
      this.tell(`  ${label}, all the same`)
      this.count('crashes inside an append')
      await this.run(process, dying)
    }
    // Mostly its lock is free at once; else whoever comes next must take it.
    if (this.tape.chance(0.25)) return
    for (const release of process.releases) release()
    await this.run(process, () => {})
  }
}
