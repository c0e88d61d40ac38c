/** Pawl through its public surface: the whole log kept, every delta in it, one reader that follows along. */
import { join } from 'node:path'
import { createAgent, tool } from '../../dist/index.js'
import { memoryStore, sqliteStore } from '../../dist/log.js'
import { counters } from '../harness/contender.mjs'
import { answersOf, RESULT } from '../harness/script.mjs'

/** @typedef {import('../../dist/index.js').Agent} Agent */
/** @typedef {import('../harness/contender.mjs').Chat} Chat */

const KEEPS = {
  memory: 'nothing',
  sqlite: 'every event, every delta; synced before each effect',
}

/** @type {import('../harness/contender.mjs').Start} */
export async function start({ script, store: kind, folder, unwatched = false }) {
  const store = kind === 'memory' ? memoryStore() : sqliteStore(join(folder, 'pawl.db'))
  const answers = answersOf(script)
  const counts = counters()
  let asked = 0

  /** @type {import('../../dist/adapters.js').ModelAdapter} */
  const model = {
    provider: 'bench',
    model: 'fake',
    stream(request) {
      counts.now.requests += 1
      counts.now.history = request.messages.length
      return said(answers(asked++))
    },
  }
  const look = tool({
    name: 'look',
    description: 'Looks.',
    parameters: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
    execute() {
      counts.now.calls += 1
      return RESULT
    },
  })
  const options = { model, store, tools: [look], maxSteps: (script.steps ?? 0) + 1 }

  return {
    keeps: KEEPS[kind === 'memory' ? 'memory' : 'sqlite'],
    async open(id) {
      asked = 0
      const agent = await createAgent({ ...options, sessionId: id })
      return new PawlChat(agent, unwatched ? undefined : follow(agent, counts))
    },
    seen: counts.take,
    end: async () => store[Symbol.asyncDispose](),
  }
}

/** A class, so that an idle one weighs hardly more than its agent. @implements {Chat} */
class PawlChat {
  #agent
  #reader

  /** @param {Agent} agent @param {Promise<void> | undefined} reader */
  constructor(agent, reader) {
    this.#agent = agent
    this.#reader = reader
  }

  /** @param {string} prompt */
  async turn(prompt) {
    const { reason } = await this.#agent.run(prompt)
    if (reason.kind !== 'completed') throw new Error(`The turn ended with ${JSON.stringify(reason)}`)
  }

  async close() {
    await this.#agent.close()
    await this.#reader
  }

  async logged() {
    let deltas = 0
    for await (const event of this.#agent.session.events()) if (isDelta(event)) deltas += 1
    return deltas
  }

  /** Whether there is such a thing in the build at hand. */
  async hibernate() {
    const able = /** @type {Agent & { hibernate?: () => unknown }} */ (this.#agent)
    await able.hibernate?.()
    return able.hibernate !== undefined
  }
}

/** @param {Agent} agent @param {ReturnType<typeof counters>} counts */
async function follow(agent, counts) {
  for await (const event of agent.session.events({ live: true })) if (isDelta(event)) counts.now.deltas += 1
}

/** @param {import('../../dist/log.js').SessionEvent} event */
export const isDelta = ({ type, data }) => type === 'assistant/chunk' && data.chunk.type === 'text-delta'

/** One answer as an adapter streams it. @param {import('../harness/script.mjs').Answer} answer */
export async function* said({ deltas, call }) {
  /** @typedef {import('../../dist/index.js').StreamChunk} StreamChunk */
  yield/** @type {StreamChunk} */ ({ type: 'block-start', index: 0, blockType: 'text' })
  for (const text of deltas) yield/** @type {StreamChunk} */ ({ type: 'text-delta', index: 0, text })
  yield/** @type {StreamChunk} */ ({ type: 'block-end', index: 0, block: { type: 'text', text: deltas.join('') } })
  if (call !== undefined) yield* asking(call)
  yield/** @type {StreamChunk} */ ({ type: 'usage', usage: { inputTokens: 100, outputTokens: deltas.length } })
  yield/** @type {StreamChunk} */ ({ type: 'finish', reason: { kind: call === undefined ? 'stop' : 'tool-calls' } })
}

/** @param {{ readonly n: number }} call @returns {import('../../dist/index.js').StreamChunk[]} */
function asking(call) {
  const named = { id: `call-${call.n}`, name: 'look' }
  const text = JSON.stringify(call)
  return [
    { type: 'block-start', index: 1, blockType: 'tool-call' },
    { type: 'tool-call-delta', index: 1, ...named, argumentsDelta: text },
    { type: 'block-end', index: 1, block: { type: 'tool-call', ...named, arguments: text } },
  ]
}
