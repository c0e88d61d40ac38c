/**
 * One of several processes on one file. Told `append`, it appends for a while, one event after the other, each flushed;
 * told `hang`, it takes turns whose model says nothing until they are cancelled, and says of each that it has begun.
 */
import { createAgent } from '../../dist/index.js'
import { sqliteStore } from '../../dist/log.js'

/** @typedef {{ path: string, session: string }} Job */
/** @typedef {{ append: number } | { hang: number }} Order ms; turns */

/** @type {import('../../dist/adapters.js').ModelAdapter} */
const model = {
  provider: 'bench',
  model: 'silent',
  async *stream(_request, { signal }) {
    process.send?.('silent')
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
  },
}

const { path, session } = /** @type {Job} */ (JSON.parse(process.argv[2] ?? ''))
const agent = await createAgent({ model, store: sqliteStore(path), sessionId: session })
process.on('message', async (/** @type {Order} */ order) => {
  if ('append' in order) process.send?.(await append(order.append))
  else await hang(order.hang)
})
process.send?.('ready')

/** @param {number} ms @returns how long each took, in ms */
async function append(ms) {
  const took = []
  const end = performance.now() + ms
  for (let n = 0; performance.now() < end; n++) {
    const begun = performance.now()
    agent.session.note('bench/append', { n })
    await agent.session.flush()
    took.push(performance.now() - begun)
  }
  return took
}

/** @param {number} turns */
async function hang(turns) {
  for (let turn = 0; turn < turns; turn++) {
    const { reason } = await agent.run('Wait.')
    if (reason.kind !== 'aborted') throw new Error(`The turn was not cancelled: ${JSON.stringify(reason)}`)
  }
}
