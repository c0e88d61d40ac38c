/**
 * A process of its own on a SQLite store: `node sqlite-child.mjs TASK FILE [ARGUMENT]`. It tells its parent over IPC what
 * it did, once that was acknowledged. It runs what was built, since Node 20 runs no TypeScript.
 */
import { subscribe } from 'node:diagnostics_channel'
import { sqliteStore } from '../../../dist/log/stores/sqlite.js'

const [task, file, argument] = process.argv.slice(2)
const store = sqliteStore(file, { busyTimeoutMs: 20_000 })
const warnings = []
process.on('warning', ({ message }) => warnings.push(message))
const tell = (fact) => process.send?.(fact)
const create = (id) => ({ format: 1, id, createdAt: 1_700_000_000_000 })
const note = (seq, data) => ({ type: 'acme/note', seq, time: 1_700_000_000_000 + seq, ignorable: true, data })
/** Until it is killed; only the wish to hear from the parent keeps the channel open. */
const stay = () => process.on('message', () => {})
/** The thread that writes has started, and what is asked from now on is written by it. */
const writerIsThere = new Promise((resolve) => {
  subscribe('worker_threads', ({ worker }) => worker.on('message', (said) => said === 'ready' && setImmediate(resolve)))
})
const own = (id = 's') => store.acquire(id, { create: create(id) })

const tasks = {
  /** Owns the session until it is killed or the parent hangs up; tells when it has it and when it lost it. */
  async own() {
    stay()
    const owner = await own()
    owner.lost.addEventListener('abort', () => tell({ lost: owner.lost.reason.code }))
    tell({ owned: owner.epoch })
  },
  /** Appends batches of growing size for ever, from wherever the log ends. */
  async append() {
    const owner = await own()
    for (let [seq, size] = [owner.head, 1]; ; size = (size % 5) + 1) {
      const batch = Array.from({ length: size }, (_, i) => note(seq + i, { epoch: owner.epoch, size, i }))
      await owner.append(batch, { expectedSeq: seq })
      seq += size
      tell({ head: seq })
    }
  },
  /** Appends single events for ever and keeps a checkpoint now and then; tells what was acknowledged. */
  async keep() {
    const owner = await own()
    for (let seq = owner.head; ; seq++) {
      await owner.append([note(seq, { n: seq })], { expectedSeq: seq })
      tell({ head: seq + 1 })
      if (seq % 7 !== 6) continue
      await owner.keep({ seq: seq + 1, body: new Uint8Array(Buffer.from(`up to ${seq + 1}`)) })
      tell({ kept: seq + 1 })
    }
  },
  /** Takes the session again and again, each time for some small appends; tells what was acknowledged. */
  async visit() {
    for (;;) {
      const owner = await own()
      for (let seq = owner.head; seq < owner.head + 20; seq++)
        await owner.append([note(seq, { n: seq })], { expectedSeq: seq })
      await owner.release()
      tell({ head: owner.head + 20 })
    }
  },
  /** Appends two events and never hears of it: killed at once, or asleep while its writer's thread works, until killed. */
  async unheard() {
    stay()
    const owner = await own()
    await owner.append([note(owner.head, { heard: true })], { expectedSeq: owner.head })
    await writerIsThere
    const seq = owner.head + 1
    void owner
      .append([note(seq, { heard: false }), note(seq + 1, { heard: false })], { expectedSeq: seq })
      .then(() => tell({ acknowledged: true }))
    if (argument === 'killed') process.kill(process.pid, 'SIGKILL')
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
  },
  /** Takes the session `argument` times, for one append each, against whoever else wants it. */
  async contend() {
    for (let left = Number(argument); left > 0; ) {
      try {
        const owner = await own()
        await owner.append([note(owner.head, { epoch: owner.epoch, pid: process.pid })], { expectedSeq: owner.head })
        await owner.release()
        left -= 1
      } catch (error) {
        if (error.code !== 'SESSION_BUSY') throw error
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 5))
      }
    }
    await store[Symbol.asyncDispose]()
  },
  /** Takes each command with an event that names it, and crashes halfway through the `argument`th. */
  async take() {
    stay()
    const owner = await own()
    let [seq, left] = [owner.head, Number(argument)]
    for await (const { id } of owner.commands(new AbortController().signal)) {
      const append = owner.append([note(seq, { took: id })], {
        expectedSeq: seq,
        takes: [{ id, outcome: { kind: 'taken', seq } }],
      })
      left -= 1
      if (left === 0) process.kill(process.pid, 'SIGKILL')
      await append
      seq += 1
      tell({ took: id })
    }
  },
  /** Leaves at once with appends on their way. */
  async leave() {
    const owner = await own()
    for (let seq = 0; seq < 50; seq++) owner.append([note(seq, {})], { expectedSeq: seq })
    process.exit(3)
  },
  /** Does its work, closes nothing, and should end by itself. */
  async idle() {
    const owner = await own()
    await owner.append([note(owner.head, {})], { expectedSeq: owner.head })
    process.disconnect()
    // Neither an ownership nor the wait for commands keeps a process.
    for await (const _ of owner.commands(new AbortController().signal));
  },
  /** Appends `argument` events and closes. */
  async write() {
    const owner = await own()
    const events = Array.from({ length: Number(argument) }, (_, i) => note(owner.head + i, { text: 'é\u0000𝒳', i }))
    await owner.append(events, { expectedSeq: owner.head })
    const { driverName } = await import('../../../dist/log/stores/sqlite/driver.js')
    tell({ driver: driverName() })
    process.emitWarning('of something else', 'ExperimentalWarning')
    setImmediate(() => tell({ warnings }))
    await store[Symbol.asyncDispose]()
  },
}

// Not awaited here, so that a process with nothing left to do ends with 0.
void tasks[task]()
