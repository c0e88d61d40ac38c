/**
 * What is counted: an agent with a fake model that makes one promise a chunk. Its ids and its clock are the same every
 * time, or what they are like would be counted too.
 */
import { createAgent, tool } from '../../dist/index.js'
import { memoryStore, sqliteStore } from '../../dist/log.js'
import { answersOf, RESULT } from '../harness/script.mjs'

/** @typedef {import('../../dist/index.js').StreamChunk} StreamChunk */
/** @typedef {{ size: number, live: (n: number) => Promise<void> }} Unit */

/** Deltas of an answer, and of a burst. */
const DELTAS = 20
const clock = {
  now: () => 1_700_000_000_000,
  setTimeout: (/** @type {() => void} */ act, /** @type {number} */ ms) => setTimeout(act, ms),
  clearTimeout: (/** @type {unknown} */ timer) => clearTimeout(/** @type {NodeJS.Timeout} */ (timer)),
}

/**
 * `committed` is called where a commit has just been waited for: before an answer, in a tool, after a turn.
 * @param {{ store: 'memory' | 'sqlite', path: string, committed: () => void }} options
 */
export function createSubject({ store: kind, path, committed }) {
  const store = kind === 'memory' ? memoryStore() : sqliteStore(path)
  let sessions = 0
  let ids = 0

  /** `bursts`: the model waits after so many deltas until they are on disk. @param {{ script: import('../harness/script.mjs').Script, turns?: number, burst?: number }} life */
  async function live({ script, turns = 1, burst = Number.POSITIVE_INFINITY }) {
    const answers = answersOf(script)
    let asked = 0
    const look = tool({
      name: 'look',
      description: 'Looks.',
      parameters: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
      execute() {
        committed()
        return RESULT
      },
    })
    const model = {
      provider: 'bench',
      model: 'fake',
      stream() {
        committed()
        return iterate(chunksOf(answers(asked++)), burst, flushed)
      },
    }
    const maxSteps = (script.steps ?? 0) + 1
    const newId = () => `id-${String(ids++).padStart(33, '0')}`
    const sessionId = `session-${String(sessions++).padStart(4, '0')}`
    const agent = await createAgent({ model, store, tools: [look], maxSteps, sessionId, newId, clock })
    async function flushed() {
      await agent.session.flush()
      committed()
    }
    for (let turn = 0; turn < turns; turn++) {
      const { reason } = await agent.run('Look around.')
      if (reason.kind !== 'completed') throw new Error(`The turn ended with ${JSON.stringify(reason)}`)
      committed()
    }
    await agent.close()
  }

  /** Of each, one life has `size` and another twice as many. @type {Readonly<Record<string, Unit>>} */
  const units = {
    followup: { size: 20, live: (turns) => live({ script: { deltas: DELTAS }, turns }) },
    step: { size: 20, live: (steps) => live({ script: { deltas: DELTAS, steps } }) },
    delta: { size: 2_000, live: (deltas) => live({ script: { deltas } }) },
    burst: { size: 20, live: (bursts) => live({ script: { deltas: bursts * DELTAS }, burst: DELTAS }) },
  }
  return { units, end: async () => store[Symbol.asyncDispose]() }
}

/**
 * @param {readonly StreamChunk[]} chunks
 * @param {number} burst
 * @param {() => Promise<void>} flushed
 * @returns {AsyncIterable<StreamChunk>}
 */
function iterate(chunks, burst, flushed) {
  let i = 0
  return {
    [Symbol.asyncIterator]: () => ({
      next: () => (i > 0 && i % burst === 0 ? flushed().then(next) : Promise.resolve(next())),
    }),
  }

  /** @returns {IteratorResult<StreamChunk, undefined>} */
  function next() {
    const value = chunks[i++]
    return value === undefined ? { value, done: true } : { value, done: false }
  }
}

/** @param {import('../harness/script.mjs').Answer} answer @returns {StreamChunk[]} */
function chunksOf({ deltas, call }) {
  const text = JSON.stringify(call)
  const named = { id: `call-${call?.n}`, name: 'look' }
  return [
    { type: 'block-start', index: 0, blockType: 'text' },
    ...deltas.map((word) => ({ type: /** @type {const} */ ('text-delta'), index: 0, text: word })),
    { type: 'block-end', index: 0, block: { type: 'text', text: deltas.join('') } },
    ...(call === undefined
      ? []
      : /** @type {StreamChunk[]} */ ([
          { type: 'block-start', index: 1, blockType: 'tool-call' },
          { type: 'tool-call-delta', index: 1, ...named, argumentsDelta: text },
          { type: 'block-end', index: 1, block: { type: 'tool-call', ...named, arguments: text } },
        ])),
    { type: 'usage', usage: { inputTokens: 100, outputTokens: deltas.length } },
    { type: 'finish', reason: { kind: call === undefined ? 'stop' : 'tool-calls' } },
  ]
}
