/**
 * The least there is to do: a while loop over an array of messages. With `sqlite`, all that is new goes through a worker
 * thread into one table before each request and before the tool's body: two synced commits a step and nothing else.
 */
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { counters } from '../harness/contender.mjs'
import { answersOf, RESULT } from '../harness/script.mjs'

/** @typedef {{ role: 'user' | 'assistant' | 'tool', text: string }} Message */
/** @typedef {{ type: 'delta', text: string } | { type: 'call', n: number }} Part */

/** @type {import('../harness/contender.mjs').Start} */
export async function start({ script, store, folder }) {
  const answers = answersOf(script)
  const counts = counters()
  const log = store === 'memory' ? undefined : durable(join(folder, 'floor.db'))
  let asked = 0

  /** @param {readonly Message[]} history @returns {AsyncGenerator<Part>} */
  async function* model(history) {
    counts.now.requests += 1
    counts.now.history = history.length
    const { deltas, call } = answers(asked++)
    for (const text of deltas) yield { type: 'delta', text }
    if (call !== undefined) yield { type: 'call', n: call.n }
  }

  /** @param {number} _n */
  async function look(_n) {
    counts.now.calls += 1
    return RESULT
  }

  class Floor {
    /** @type {Message[]} */
    #history = []

    /** @param {string} prompt */
    async turn(prompt) {
      let parts = /** @type {(Part | Message)[]} */ ([this.#add({ role: 'user', text: prompt })])
      for (;;) {
        await log?.(parts)
        parts = []
        let text = ''
        let call = -1
        for await (const part of model(this.#history)) {
          parts.push(part)
          if (part.type === 'call') call = part.n
          else {
            text += part.text
            counts.now.deltas += 1
          }
        }
        parts.push(this.#add({ role: 'assistant', text }))
        await log?.(parts)
        if (call < 0) return
        parts = [this.#add({ role: 'tool', text: await look(call) })]
      }
    }

    async close() {}

    /** @param {Message} message */
    #add(message) {
      this.#history.push(message)
      return message
    }
  }

  return {
    keeps: log === undefined ? 'nothing' : 'every delta; two synced commits a step, no more',
    async open() {
      asked = 0
      return new Floor()
    },
    seen: counts.take,
    end: async () => log?.close(),
  }
}

/** Resolves when what it was given is on disk. @param {string} path */
function durable(path) {
  const worker = new Worker(new URL('./floor-writer.mjs', import.meta.url), { workerData: path })
  const ended = new Promise((resolve) => worker.once('exit', resolve))
  let acknowledge = () => {}
  worker.on('message', () => acknowledge())
  const append = (/** @type {readonly object[]} */ parts) =>
    new Promise((resolve) => {
      acknowledge = () => resolve(undefined)
      worker.postMessage(JSON.stringify(parts))
    })
  return Object.assign(append, {
    async close() {
      worker.postMessage(null)
      await ended
    },
  })
}
