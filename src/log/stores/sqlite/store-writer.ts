/**
 * All that one store writes. A thread takes longer to start than most of what a process asks first: so opening sessions,
 * posting and giving back are done on this thread, and the first events start a worker, which takes over once it is
 * there. One of the two writes at any time, and each answers before the other is asked.
 */
import type { StoreFailure } from '../../errors.ts'
import { storeFailure } from './driver.ts'
import { patiently, patientlySync } from './patience.ts'
import type { Reply, Request, WriterData } from './protocol.ts'
import { drainAtExit, startThread, type Writer, type WriterThread } from './writer-thread.ts'
import { createWriting, type Standing } from './writing.ts'

/** This thread has other work: a group ends after a few ms, and what is left is the next. */
const BOUNDS = { requests: 256, bytes: 1024 * 1024, ms: 5 }

interface Asked {
  readonly request: Request
  readonly resolve: (reply: Reply) => void
}

/** Nothing is opened before the first request. `onDeath` is told once if the worker ends without having been closed. */
export function createWriter(data: Omit<WriterData, 'done'>, onDeath: (failure: StoreFailure) => void): Writer {
  const { path, busyTimeoutMs } = data
  // A locked file is waited for between tries, not asleep.
  const writing = createWriting({ ...data, busyTimeoutMs: 0, bounds: BOUNDS })
  const queue: Asked[] = []
  let working = false
  let thread: WriterThread | undefined
  let threadIsReady = false
  /** The worker could not start: this thread goes on. */
  let alone = false
  /** Held on behalf of the worker from when it has taken over. */
  let standing: Standing | undefined
  let closed: Promise<void> | undefined
  /** Nothing is left to hand over. */
  let over = false
  let settled: (() => void) | undefined

  function start(): void {
    if (thread !== undefined || alone) return
    thread = startThread(data, {
      onReady() {
        threadIsReady = true
        if (!working) handOver()
      },
      onDeath: died,
    })
  }

  function died(failure: StoreFailure): void {
    if (standing === undefined) {
      thread = undefined
      threadIsReady = false
      alone = true
      process.emitWarning(
        `${failure.message}. Events are written on the main thread, which waits for the disk`,
        WARNING,
      )
      if (!working) void work()
      return
    }
    standing.owner?.release()
    onDeath(failure)
  }

  /** Everything asked so far is answered, so the worker begins where this thread ends. */
  function handOver(): void {
    if (thread === undefined || standing !== undefined || over) return
    standing = writing.leave()
    thread.take(standing)
    for (const { request, resolve } of queue.splice(0)) void thread.ask(request).then(resolve)
    settled?.()
  }

  async function work(): Promise<void> {
    working = true
    const undrained = drainAtExit({ drain: drainQueue })
    // What is asked in the same turn of the event loop is one group, and between groups others get their turn. There may be
    // no end of them, so what is left when the worker is there goes to it.
    await nextTurn()
    if (needsThread()) start()
    while (queue.length > 0 && !threadIsReady && !(thread !== undefined && needsThread())) {
      const replies = await committed()
      for (const [i, { resolve }] of queue.splice(0, replies.length).entries()) {
        resolve(replies[i] ?? { kind: 'failed', ...noReply() })
      }
      await nextTurn()
    }
    undrained()
    working = false
    if (threadIsReady) handOver()
    if (queue.length === 0) settled?.()
  }

  /** Bringing an older file up copies all of it: that is nothing for this thread. */
  function needsThread(): boolean {
    try {
      return !alone && writing.isOlder()
    } catch {
      return false // What is wrong with the file, the first commit says.
    }
  }

  /** The replies to the front of the queue; a file that stays locked is the answer to all of it. */
  async function committed(): Promise<readonly Reply[]> {
    let replies: readonly Reply[] = []
    const attempt = (): void => {
      replies = writing.commit(queue.map(({ request }) => request))
      if (areLocked(replies)) throw storeFailure('locked', path, 'another writes')
    }
    await patiently(attempt, busyTimeoutMs).catch(() => {}) // The replies say so themselves.
    return replies
  }

  /** The process exits: what is asked and not done is done now. Nobody hears the answer. */
  function drainQueue(deadline: number): void {
    while (queue.length > 0 && performance.now() < deadline) {
      let answered = 0
      const attempt = (): void => {
        const replies = writing.commit(queue.map(({ request }) => request))
        answered = replies.length
        if (areLocked(replies)) throw storeFailure('locked', path, 'another writes')
      }
      try {
        patientlySync(attempt, deadline - performance.now())
      } catch {
        return // It stays locked: what was not acknowledged was promised to nobody.
      }
      queue.splice(0, answered)
    }
  }

  const noReply = () => {
    const { reason, message } = storeFailure('io', path, 'no reply')
    return { reason, message }
  }

  async function close(): Promise<void> {
    if (working || queue.length > 0) {
      await new Promise<void>((resolve) => {
        settled = resolve
      })
    }
    over = true
    if (standing !== undefined) {
      await thread?.close()
      standing.owner?.release()
      return
    }
    // A worker that is still starting has nothing to do any more.
    const ended = thread?.close()
    writing.close()
    await ended
  }

  return {
    ask(request) {
      if (thread !== undefined && standing !== undefined) return thread.ask(request)
      if (request.kind === 'append' && request.batch.rows.length > 0) start()
      return new Promise((resolve) => {
        queue.push({ request, resolve })
        if (!working) void work()
      })
    },
    close() {
      closed ??= close()
      return closed
    },
  }
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

const WARNING = 'PawlStoreWarning'

/** Nothing was begun: the file was locked by another. */
const areLocked = (replies: readonly Reply[]): boolean =>
  replies.length > 0 && replies.every((reply) => reply.kind === 'failed' && reply.reason === 'locked')
