/** Opens a conversation again: as the first thing this process does, then from a store that is open, then from new ones. */
import { join } from 'node:path'
import { createAgent } from '../../dist/index.js'
import { sqliteStore } from '../../dist/log.js'
import { answerJob } from '../harness/alone.mjs'

/** @typedef {{ folder: string, turns: number, times: number }} Job */
/** ms; `cold` from the start of the process. @typedef {{ cold: number, open: number[], anew: number[], events: number }} Taken */

/** @type {import('../../dist/adapters.js').ModelAdapter} */
const model = {
  provider: 'bench',
  model: 'fake',
  stream() {
    throw new Error('Nothing is asked')
  },
}

await answerJob(async (/** @type {Job} */ { folder, turns, times }) => {
  const path = join(folder, 'pawl.db')
  let store = sqliteStore(path)
  const first = await createAgent({ model, store, sessionId: 'chat' })
  const cold = performance.now()
  const { head } = first.session
  await end(first, turns)

  /** @type {Taken} */
  const taken = { cold, open: [], anew: [], events: head }
  for (let i = 0; i < times; i++) {
    const begun = performance.now()
    const agent = await createAgent({ model, store, sessionId: 'chat' })
    taken.open.push(performance.now() - begun)
    await end(agent, turns)
  }
  for (let i = 0; i < times; i++) {
    await store[Symbol.asyncDispose]()
    const begun = performance.now()
    store = sqliteStore(path)
    const agent = await createAgent({ model, store, sessionId: 'chat' })
    taken.anew.push(performance.now() - begun)
    await end(agent, turns)
  }
  await store[Symbol.asyncDispose]()
  return taken
})

/** @param {import('../../dist/index.js').Agent} agent @param {number} turns */
async function end(agent, turns) {
  const messages = agent.session.messages().length
  if (messages !== 2 * turns) throw new Error(`It has ${messages} messages of ${2 * turns}`)
  await agent.close()
}
