/**
 * The SQLite store, put together: reading on this thread, everything that writes through the writer. It is lazy: the
 * file is looked for at the first call, and made only by an acquire that may create a session.
 */
import { resolve } from 'node:path'
import { Fenced, SessionBusy, SessionNotFound, StoreFailure } from '../../errors.ts'
import { frozenJson } from '../../json.ts'
import type { LogStore, Ownership, PostedCommand, SessionHeader } from '../../store.ts'
import { backUp } from './backup.ts'
import { storeFailure } from './driver.ts'
import { createLeases } from './leases.ts'
import { ownerLives } from './owners.ts'
import { type OwnershipPorts, rest, Tenure } from './ownership.ts'
import { patiently, patientlySync } from './patience.ts'
import { findPlace, makePlace, type Statfs } from './place.ts'
import type { Reply, Request } from './protocol.ts'
import { createPulse } from './pulse.ts'
import { createReader, type Listed, type Reader } from './reader.ts'
import { createReads } from './reads.ts'
import { openReading } from './schema.ts'
import { createWriter } from './store-writer.ts'
import type { Writer } from './writer-thread.ts'

export interface StoreSettings {
  /** How long a locked file is waited for. */
  readonly busyTimeoutMs: number
  /** Tells what file system a folder is on; tests put another here. */
  readonly statfs?: Statfs
  /** Further pragmas of the writing connection, `max_page_count = 20` for a disk that is soon full. */
  readonly pragmas?: readonly string[]
}

/** What `sqliteStore` returns, with what tests may change about it. */
export function createStore(at: string, settings: StoreSettings): LogStore & { backup(to: string): Promise<void> } {
  const asked = resolve(at)
  const { busyTimeoutMs, statfs, pragmas = [] } = settings
  let path: string | undefined
  let reader: Reader | undefined
  let writer: Writer | undefined
  /** This store as others know it, once it owns anything. */
  let self = ''
  let closed: Promise<void> | undefined

  const openReader = (): Reader | undefined => {
    refuseClosed()
    if (reader !== undefined) return reader
    path ??= findPlace(asked, statfs)
    const connection = path === undefined ? undefined : openReading(path)
    reader = connection && createReader(connection)
    return reader
  }
  const look = <T>(query: (reader: Reader) => T): Promise<T | undefined> =>
    patiently(() => {
      const open = openReader()
      return open && query(open)
    }, busyTimeoutMs)
  const lookNow = <T>(query: (reader: Reader) => T): T | undefined =>
    patientlySync(() => {
      const open = openReader()
      return open && query(open)
    }, busyTimeoutMs)

  const logs = createPulse(() => reader?.version() ?? 0)
  const posts = createPulse(() => reader?.lastPosted() ?? 0, {
    since: (n) => reader?.postedSince(n) ?? [],
    changed: (session) => leases.posted(session),
  })
  const leases = createLeases(openReader)
  const ports: OwnershipPorts = { ask, look, lookNow, leases, logs, posts }

  function refuseClosed(): void {
    if (closed !== undefined) throw storeFailure('io', asked, 'this store was closed')
  }

  /** Undefined while there is no file and none is to be made. */
  function openWriter(make: boolean): Writer | undefined {
    refuseClosed()
    path ??= make ? makePlace(asked, statfs) : findPlace(asked, statfs)
    if (path === undefined) return undefined
    writer ??= createWriter({ path, busyTimeoutMs, pragmas }, (failure) => {
      writer = undefined
      leases.loseAll(() => failure)
    })
    return writer
  }

  async function ask(request: Request): Promise<Reply> {
    const open = openWriter(request.kind === 'acquire' && request.header !== undefined)
    return open === undefined ? { kind: 'not-found' } : open.ask(request)
  }

  async function acquire(
    sessionId: string,
    options: { create?: SessionHeader; steal?: boolean } = {},
  ): Promise<Ownership> {
    const { create, steal = false } = options
    const header = create && { header: JSON.stringify(frozenJson(create)) }
    const reply = await ask({ kind: 'acquire', name: sessionId, createdAt: create?.createdAt ?? 0, steal, ...header })
    refuseClosed()
    if (reply.kind !== 'acquired') throw refusal(sessionId, reply)
    const tenure = await owned(sessionId, reply)
    try {
      return tenure.wake(reply.head, await waiting(reply.session))
    } catch (error) {
      await tenure.release()
      throw error
    }
  }

  /** @throws StoreFailure 'damaged' for a header that cannot be read; the session is given back then. */
  async function owned(sessionId: string, acquired: Reply & { kind: 'acquired' }): Promise<Tenure> {
    // One text for all of its sessions: each reply brings its own.
    if (acquired.owner !== self) self = acquired.owner
    try {
      return new Tenure({ ...acquired, owner: self }, ports)
    } catch (cause) {
      const { session, epoch } = acquired
      await ask({ kind: 'release', session, epoch })
      throw storeFailure('damaged', asked, `the header of ${sessionId} is not JSON`, cause)
    }
  }

  /** The commands that nobody has taken, a page at a time. */
  async function waiting(session: number): Promise<readonly PostedCommand[]> {
    const commands: PostedCommand[] = []
    for (let after = 0; ; ) {
      const page = (await look((reader) => reader.posted(session, after, 64))) ?? []
      const last = page.at(-1)
      if (last === undefined) return commands
      commands.push(...page.map(({ command }) => command))
      after = last.n
    }
  }

  async function post(sessionId: string, command: PostedCommand): Promise<void> {
    const reply = await ask({
      kind: 'post',
      name: sessionId,
      id: command.id,
      command: JSON.stringify(frozenJson(command)),
    })
    if (reply.kind !== 'posted') throw refusal(sessionId, reply)
    posts.wake(reply.session)
  }

  /** Each owner elsewhere is looked at once a list. */
  function owning(): (listed: Listed) => boolean {
    const living = new Map<string, boolean>()
    return ({ session, epoch, owner }) => {
      if (owner === undefined) return false
      if (leases.owns(session, epoch)) return true
      const lives = living.get(owner) ?? ownerLives(path ?? asked, owner)
      living.set(owner, lives)
      return lives
    }
  }

  async function remove(sessionId: string): Promise<void> {
    const reply = await ask({ kind: 'delete', name: sessionId })
    if (reply.kind !== 'done') throw refusal(sessionId, reply)
    logs.wake()
  }

  async function close(): Promise<void> {
    leases.loseAll(({ epoch }) => new Fenced(epoch, `Epoch ${epoch} ended: the store at ${asked} was closed`))
    logs.wake()
    posts.wake()
    // The writer's connection is closed last, and leaves nothing in the write-ahead log.
    reader?.connection.close()
    reader = undefined
    await writer?.close()
  }

  return {
    ...createReads({ path: asked, look, lookNow, logs, owning }),
    acquire,
    rest: (ownership, owner) => rest(ownership, ports, owner),
    post,
    delete: remove,
    async backup(to) {
      refuseClosed()
      path ??= findPlace(asked, statfs)
      if (path === undefined) throw storeFailure('io', asked, 'there is no file yet')
      await backUp(path, resolve(to))
    },
    [Symbol.asyncDispose]() {
      closed ??= close()
      return closed
    },
  }
}

function refusal(sessionId: string, reply: Reply): Error {
  switch (reply.kind) {
    case 'busy':
      return new SessionBusy(sessionId, reply.owner)
    case 'failed':
      return new StoreFailure(reply.reason, reply.message)
    default:
      return new SessionNotFound(sessionId)
  }
}
