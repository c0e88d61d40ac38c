/** From the question to the first word: through the adapter alone, and to a reader of an agent's durable events. */
import { join } from 'node:path'
import { openaiCompatible } from '../../dist/adapters.js'
import { createAgent } from '../../dist/index.js'
import { sqliteStore } from '../../dist/log.js'
import { isDelta } from '../contenders/pawl.mjs'
import { answerJob } from '../harness/alone.mjs'
import { answerOf, KEY, MODEL } from '../wire/contenders.mjs'

/** @typedef {{ folder: string, baseURL: string, times: number, warm: number }} Job */
/** ms. @typedef {{ adapter: number[], agent: number[] }} Taken */

await answerJob(async (/** @type {Job} */ { folder, baseURL, times, warm }) => {
  const store = sqliteStore(join(folder, 'pawl.db'))
  /** @type {Taken} */
  const taken = { adapter: [], agent: [] }
  for (let i = -warm; i < times; i++) {
    const adapter = await ofAdapter(baseURL)
    const agent = await ofAgent(store, baseURL)
    if (i < 0) continue
    taken.adapter.push(adapter)
    taken.agent.push(agent)
  }
  await store[Symbol.asyncDispose]()
  return taken
})

/** @param {string} baseURL */
async function ofAdapter(baseURL) {
  const begun = performance.now()
  let first = Number.NaN
  for await (const chunk of answerOf(baseURL)) {
    if (chunk.type === 'text-delta' && Number.isNaN(first)) first = performance.now() - begun
  }
  return first
}

/** @param {import('../../dist/log.js').LogStore} store @param {string} baseURL */
async function ofAgent(store, baseURL) {
  const agent = await createAgent({ model: openaiCompatible({ baseURL, apiKey: KEY, model: MODEL }), store })
  const reader = firstDelta(agent)
  const begun = performance.now()
  const turn = agent.run('hi')
  const first = (await reader) - begun
  await turn
  await agent.close()
  return first
}

/** @param {import('../../dist/index.js').Agent} agent */
async function firstDelta(agent) {
  for await (const event of agent.session.events({ live: true })) if (isDelta(event)) return performance.now()
  throw new Error('No delta came')
}
