/** Who is in a world: the sessions, the processes with their agents, the one that only has the store, and what they wait for. */
import { PawlError } from '../../../src/log/errors.ts'
import type { CommandOutcome, LogStore, PostedCommand } from '../../../src/log/store.ts'
import { type Host, openHost } from './host.ts'
import type { Truth } from './mirror.ts'
import { type StoreFaults, wire } from './wire.ts'
import type { SimProcess, World } from './world.ts'

/** A promise of the API: whoever holds it must learn of its end, unless its process dies. */
interface Promised {
  readonly label: string
  readonly process: SimProcess
  settled: boolean
}

/** A command that was posted, as its sender has it. */
export interface Letter {
  readonly session: string
  readonly command: PostedCommand
  /** The store said that it has it. */
  sent: boolean
  /** What somebody was told of it. */
  outcome?: CommandOutcome
}

/** Never what a promise of ours may reject with. */
const DEFECTS = ['INVALID_LOG', 'LOG_TOO_NEW', 'INVALID_EVENT', 'NOT_JSON', 'TOO_LARGE', 'UNKNOWN']

export const NO_FAULTS: StoreFaults = { fail: 0, lose: 0, hang: 0 }

export class Scene {
  readonly truth: Truth
  readonly world: World
  readonly faults: StoreFaults
  readonly sessions: string[] = []
  readonly hosts: Host[] = []
  readonly letters: Letter[] = []
  readonly promised: Promised[] = []
  /** What the clients that subscribed leave by. */
  readonly subscriptions: AbortController[] = []
  /** Processes with agents, two at most. */
  processes: SimProcess[] = []
  client: SimProcess
  outside: LogStore

  /** Where agents keep what a failing store did not take, if anywhere. */
  readonly unsaved: string | undefined

  constructor(truth: Truth, faults: StoreFaults, unsaved: string | undefined) {
    this.unsaved = unsaved
    this.truth = truth
    this.world = truth.world
    this.faults = faults
    this.client = this.world.spawn('client')
    this.outside = wire(truth, this.client, faults)
  }

  /** Another client, whose first one died. */
  newClient(): void {
    this.client = this.world.spawn('client')
    this.outside = wire(this.truth, this.client, this.faults)
  }

  process(index: number): SimProcess {
    this.processes = this.processes.filter(({ alive }) => alive)
    while (this.processes.length <= index) this.processes.push(this.world.spawn('p'))
    return this.processes[index] ?? this.world.spawn('p')
  }

  async open(sessionId: string, process: SimProcess, steal: boolean): Promise<Host> {
    this.world.tell(`${process.name} opens ${sessionId}${steal ? ', taking it' : ''}`)
    let host: Host | undefined
    await this.world.run(process, () => {
      host = openHost(this.truth, process, sessionId, { steal, faults: this.faults, unsaved: this.unsaved })
    })
    if (host === undefined) throw new Error('A step runs what it is given')
    this.hosts.push(host)
    return host
  }

  /** Agents of a session that take commands; more than one only until the first learns that it lost the session. */
  living(sessionId: string): readonly Host[] {
    return this.hosts.filter((host) => host.sessionId === sessionId && host.living !== undefined)
  }

  isOpening(sessionId: string): boolean {
    return this.hosts.some((host) => host.sessionId === sessionId && host.state === 'opening' && host.process.alive)
  }

  /** Holds a promise of the API to its word: it settles, and rejects only with what is expected. */
  expect<T>(process: SimProcess, label: string, promise: Promise<T>, then: (value: T) => void = () => {}): void {
    const one: Promised = { label, process, settled: false }
    this.promised.push(one)
    promise.then(
      (value) => {
        one.settled = true
        then(value)
      },
      (error: unknown) => {
        one.settled = true
        this.rejected(label, error)
      },
    )
  }

  rejected(label: string, error: unknown): void {
    const code = error instanceof PawlError ? error.code : undefined
    this.world.tell(`  ${label}: ${code ?? String(error)}`)
    const aborted = error instanceof Error && error.name === 'AbortError'
    const expected = aborted || (code !== undefined && !DEFECTS.includes(code))
    this.world.must(expected, 'API-ERROR', () => `${label}: ${error instanceof Error ? error.stack : String(error)}`)
  }
}
