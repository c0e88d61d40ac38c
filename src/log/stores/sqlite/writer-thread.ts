/**
 * The main thread's end of the worker that writes. The worker keeps the process alive only while a request is unanswered, and a
 * process that exits with requests on their way waits for them, bounded.
 */
import { Worker } from 'node:worker_threads'
import type { StoreFailure } from '../../errors.ts'
import { storeFailure } from './driver.ts'
import type { FromWriter, Reply, Request, ToWriter, WriterData } from './protocol.ts'
import { workerEntry } from './worker-entry.ts'
import type { Standing } from './writing.ts'

/** How long an exiting process waits for its writers. */
const EXIT_DRAIN_MS = 2_000

export interface Writer {
  /** Resolves with the writer's reply; never rejects. */
  ask(request: Request): Promise<Reply>
  /** Resolves when what was asked is answered and the file is closed. */
  close(): Promise<void>
}

export interface WriterThread extends Writer {
  /** Goes on as the one that held this so far, before anything is asked. The owner lock stays its holder's. */
  take(standing: Standing): void
}

export interface ThreadEvents {
  /** It has started, and opened the file if that can be. */
  onReady(): void
  /** Told once if it ends without having been closed. */
  onDeath(failure: StoreFailure): void
}

/** What an exiting process waits for, until a time as `performance.now()` tells it. */
export interface Draining {
  drain(deadline: number): void
}

const live = new Set<Draining>()
let exitIsWatched = false

/** Waits for it when the process exits, until the result is called. */
export function drainAtExit(draining: Draining): () => void {
  watchExit()
  live.add(draining)
  return () => live.delete(draining)
}

/** Starts the worker. */
export function startThread(data: Omit<WriterData, 'done'>, { onReady, onDeath }: ThreadEvents): WriterThread {
  const done = new Int32Array(new SharedArrayBuffer(4))
  const worker = new Worker(workerEntry('writer'), { workerData: { ...data, done } satisfies WriterData })
  const pending = new Map<number, (reply: Reply) => void>()
  let asked = 0
  let death: StoreFailure | undefined
  let cause: unknown
  let closed: Promise<void> | undefined
  const undrained = drainAtExit({ drain: (deadline) => drainUntil(done, asked, deadline) })
  const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()))

  worker.on('message', (message: FromWriter) => {
    if (message === 'ready') onReady()
    else for (const { n, reply } of message) settle(n, reply)
  })
  worker.on('error', (error) => {
    cause = error
  })
  worker.on('exit', () => {
    undrained()
    const detail = cause instanceof Error ? cause.message : 'its writer thread ended'
    death = storeFailure('io', data.path, detail, cause)
    const { reason, message } = death
    for (const n of [...pending.keys()]) settle(n, { kind: 'failed', reason, message, doubtful: true })
    if (closed === undefined) onDeath(death)
  })
  // After its listeners, which hold the process.
  worker.unref()

  function settle(n: number, reply: Reply): void {
    pending.get(n)?.(reply)
    pending.delete(n)
    if (pending.size === 0 && closed === undefined) worker.unref()
  }

  const send = (message: ToWriter): void => worker.postMessage(message, transferred(message))

  return {
    take({ owner, held }) {
      send({ standing: { owner: owner?.id, held: [...held] } })
    },
    ask(request) {
      if (death !== undefined) return Promise.resolve({ kind: 'failed', reason: death.reason, message: death.message })
      return new Promise((resolve) => {
        const n = asked++
        if (pending.size === 0) worker.ref()
        pending.set(n, resolve)
        send({ n, request })
      })
    },
    close() {
      closed ??= (async () => {
        worker.ref()
        if (death === undefined) send({ close: true })
        await ended
      })()
      return closed
    },
  }
}

/** What goes to the worker without a copy: the store was given a checkpoint's body for good, but a part of a buffer only. */
function transferred(message: ToWriter): ArrayBuffer[] {
  if (!('request' in message) || message.request.kind !== 'keep') return []
  const { buffer, byteLength } = message.request.body
  return buffer instanceof ArrayBuffer && buffer.byteLength === byteLength ? [buffer] : []
}

function watchExit(): void {
  if (exitIsWatched) return
  exitIsWatched = true
  process.on('exit', () => {
    const deadline = performance.now() + EXIT_DRAIN_MS
    for (const writer of live) writer.drain(deadline)
  })
}

/** Sleeps until the worker has answered everything; messages already sent reach it while this thread sleeps. */
function drainUntil(done: Int32Array<SharedArrayBuffer>, asked: number, deadline: number): void {
  for (;;) {
    const answered = Atomics.load(done, 0)
    const left = deadline - performance.now()
    // Both count in 32 bits and wrap together.
    if (answered === (asked | 0) || left <= 0) return
    Atomics.wait(done, 0, answered, left)
  }
}
