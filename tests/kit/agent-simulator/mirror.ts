/** What the store really holds, seen from outside: every reader, request and body is held against it. */
import type { SessionEvent } from '../../../src/log/events.ts'
import type { LogStore, SessionHeader } from '../../../src/log/store.ts'
import { type AgentSnapshot, createFold, fold } from '../../../src/machines/fold.ts'
import type { SimProcess, World } from './world.ts'

/** A tool's body that began: `key` is `callId.run`, `at` the log's length then. */
export interface Body {
  readonly key: string
  readonly at: number
}

export class MirroredSession {
  readonly id: string
  readonly header: SessionHeader
  readonly log: SessionEvent[] = []
  readonly bodies: Body[] = []
  /** The model sent what is no grammar, so rules of the stream may be broken. */
  garbled = false
  readonly #fold = createFold()

  constructor(header: SessionHeader) {
    this.id = header.id
    this.header = header
  }

  written(events: readonly SessionEvent[]): void {
    for (const event of events) {
      this.log.push(event)
      this.#fold.push(event)
    }
  }

  snapshot(): AgentSnapshot {
    return this.#fold.snapshot()
  }
}

/** The world, its store and what is in it. */
export class Truth {
  readonly world: World
  readonly store: LogStore
  readonly sessions = new Map<string, MirroredSession>()
  /** Ids of posted commands whose outcome the store has. */
  readonly taken = new Set<string>()
  /** Forks that were cut off while they were made. */
  readonly cutOff = new Set<string>()

  constructor(world: World, store: LogStore) {
    this.world = world
    this.store = store
  }

  /** The state that the first `length` events of a session leave. */
  stateAt(session: MirroredSession, length: number): AgentSnapshot {
    return length === session.log.length ? session.snapshot() : fold(session.log.slice(0, length))
  }

  /** Called for a session that is there: acquired, or created by that. */
  found(header: SessionHeader): MirroredSession {
    const session = this.sessions.get(header.id) ?? new MirroredSession(header)
    this.sessions.set(header.id, session)
    const parent = header.parentSession === undefined ? undefined : this.sessions.get(header.parentSession)
    if (parent?.garbled) session.garbled = true
    return session
  }

  /** An event was shown to somebody in that process: it must be in the store, there and so, and its process told. */
  saw(process: SimProcess, id: string, event: SessionEvent, through: string): void {
    this.world.count('events seen')
    const stored = this.sessions.get(id)?.log[event.seq]
    const same = stored === event || (stored !== undefined && JSON.stringify(stored) === JSON.stringify(event))
    this.world.must(same, 'SEEN-NOT-STORED', () => `${through} of ${id} showed seq ${event.seq} ${event.type}`)
    this.isKnown(process, id, event.seq, through)
  }

  /** What a living agent tells of an event must come after the store said to its process that it is durable. */
  isKnown(process: SimProcess, id: string, seq: number, through: string): void {
    this.world.must(
      seq < (process.known.get(id) ?? 0),
      'TOLD-BEFORE-DURABLE',
      () => `${through} of ${id} told of seq ${seq}; ${process.name} knows ${process.known.get(id) ?? 0} to be durable`,
    )
  }
}
