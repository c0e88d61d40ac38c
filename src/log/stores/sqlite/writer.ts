/**
 * Entry of the worker thread that writes from a store's first events on. What arrives while a commit is on its way to
 * the disk waits and forms the next group.
 */
import { parentPort, workerData } from 'node:worker_threads'
import type { FromWriter, Reply, Request, SentStanding, ToWriter, WriterData } from './protocol.ts'
import { createWriting } from './writing.ts'

/** So long without a request, the write-ahead log is folded back into the file and cut to nothing. */
const IDLE_MS = 1_000

const port = parentPort
const data: WriterData = workerData
const writing = createWriting(data)
const waiting: { readonly n: number; readonly request: Request }[] = []
let closing = false
let turnDue = false

const idle = setTimeout(() => writing.truncate(), IDLE_MS).unref()

port?.on('message', (message: ToWriter) => {
  if ('standing' in message) return takeOver(message.standing)
  if ('close' in message) closing = true
  else waiting.push(message)
  scheduleTurn()
})
openEarly()
send('ready')

/** The first commit would pay for it otherwise. */
function openEarly(): void {
  try {
    writing.open()
  } catch {
    // The first commit finds the same, and its answer says so.
  }
}

/** The lock itself stays with the thread that took it, in the same process. */
function takeOver({ owner, held }: SentStanding): void {
  writing.take({ owner: owner === undefined ? undefined : { id: owner, release: () => {} }, held: new Map(held) })
}

function scheduleTurn(): void {
  if (turnDue) return
  turnDue = true
  // Messages that have already arrived are delivered before an immediate runs.
  setImmediate(turn)
}

function turn(): void {
  turnDue = false
  if (waiting.length > 0) answer(writing.commit(waiting.map(({ request }) => request)))
  if (waiting.length > 0) scheduleTurn()
  else if (closing) close()
  else idle.refresh()
}

function answer(replies: readonly Reply[]): void {
  const asked = waiting.splice(0, replies.length)
  Atomics.add(data.done, 0, asked.length)
  Atomics.notify(data.done, 0)
  send(
    asked.flatMap(({ n }, i) => {
      const reply = replies[i]
      return reply === undefined ? [] : [{ n, reply }]
    }),
  )
}

function send(message: FromWriter): void {
  port?.postMessage(message)
}

function close(): void {
  clearTimeout(idle)
  try {
    writing.close()
  } finally {
    port?.close()
  }
}
