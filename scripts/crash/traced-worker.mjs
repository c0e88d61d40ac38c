/**
 * An agent to be traced: `node traced-worker.mjs JSON`. It leaves a marker as it asks for an append and the moment the
 * append is acknowledged, each one write, so that a trace of system calls shows them beside what reached the disk. One
 * session, whose appends never overlap: what is written between two markers of a number is that append. While it rests,
 * commands are posted to another session, which nobody owns, and marked alike.
 */
import { openSync, writeSync } from 'node:fs'
import { scripted, text, toolCall } from '../../dist/adapters.js'
import { createAgent } from '../../dist/index.js'
import { createStore } from '../../dist/log/stores/sqlite/store.js'
import { effectTools } from './tools.mjs'

/**
 * @typedef {object} Traced
 * @property {string} store
 * @property {string} witness
 * @property {string} markers
 * @property {number} turns
 * @property {boolean} unsynced a store that does not sync: what the check must find
 */

const { store: path, witness, markers, turns, unsynced } = /** @type {Traced} */ (JSON.parse(process.argv[2] ?? 'null'))
const out = openSync(markers, 'a')
const mark = (/** @type {string} */ line) => void writeSync(out, `${line}\n`)

const sqlite = createStore(path, { busyTimeoutMs: 20_000, pragmas: unsynced ? ['synchronous = OFF'] : [] })
let asked = 0
/** @type {typeof sqlite} */
const store = {
  ...sqlite,
  async acquire(session, options) {
    const ownership = await sqlite.acquire(session, options)
    return {
      ...ownership,
      async append(events, about) {
        const n = ++asked
        const runs = events.flatMap(({ type, data }) =>
          type === 'tool/dispatch' ? [`${data.callId}/${data.run}`] : [],
        )
        mark(`ask ${n} ${about.expectedSeq} ${events.length} ${runs.join(',')}`)
        await ownership.append(events, about)
        mark(`ack ${n}`)
      },
    }
  },
}

const other = await sqlite.acquire('other', { create: { format: 1, id: 'other', createdAt: 0 } })
await other.release()
const post = async () => {
  const n = ++asked
  mark(`ask ${n} post`)
  const content = [{ type: /** @type {const} */ ('text'), text: `posted ${n}` }]
  const message = {
    id: `m${n}`,
    role: /** @type {const} */ ('user'),
    content,
    source: { kind: /** @type {const} */ ('user') },
  }
  await sqlite.post('other', { id: `c${n}`, kind: 'inject', message })
  mark(`ack ${n}`)
}

const names = ['effect_unknown', 'effect_rerun', 'effect_ask', 'effect_probe']
const agent = await createAgent({
  store,
  sessionId: 's',
  // A turn has two steps: two tools, then words.
  model: scripted((_, n) =>
    n % 2 === 1
      ? [text(`words of request ${n} `.repeat(20), { deltas: 12 })]
      : [0, 1].map((i) => toolCall(names[(n / 2 + i) % names.length] ?? '', { token: `${n}-${i}` })),
  ),
  tools: effectTools({ session: 's', witness }),
})
for (let turn = 0; turn < turns; turn++) {
  const receipt = agent.followup(`task ${turn}`)
  const { seq } = await receipt.accepted
  mark(`accepted ${seq}`)
  await receipt.turn
  await agent.whenQuiet()
  await post()
}
await agent.close()
await store[Symbol.asyncDispose]()
