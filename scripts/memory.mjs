/**
 * What an agent holds of memory, bytes of heap a piece: `npm run memory`, or `-- --agents 3000`. Each line is a process
 * of its own, in which that many agents are brought into a state at once and then closed and dropped again; what stays
 * then (the log of a store in memory, its record of the session) is the store's and told apart.
 * `-- --sessions 10000 --working 100 --seconds 30`: so many sessions in one process over SQLite, each with a turn behind
 * it, of which so many work all the time and the others hibernate; what that process takes.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import v8 from 'node:v8'

const { values } = parseArgs({
  options: {
    agents: { type: 'string', default: '1000' },
    only: { type: 'string' },
    one: { type: 'string' },
    snapshot: { type: 'string' },
    sessions: { type: 'string' },
    working: { type: 'string', default: '100' },
    seconds: { type: 'string', default: '30' },
  },
})
const COUNT = Number(values.agents)

/** @typedef {import('../dist/index.js').Agent} Agent */

/** What an agent is brought to. @type {Record<string, (agent: Agent) => Promise<void>>} */
const STATES = {
  fresh: async () => {},
  'after a turn': async (agent) => void (await agent.run('hi')),
  'asleep, fresh': (agent) => agent.hibernate(),
  'asleep, after a turn': async (agent) => {
    await agent.run('hi')
    await agent.hibernate()
  },
  'after ten turns': async (agent) => {
    for (let turn = 0; turn < 10; turn++) await agent.run('hi')
  },
}

/** Answers in 20 deltas, and keeps nothing of what it was asked. @type {import('../dist/index.js').ModelAdapter} */
const model = {
  provider: 'measured',
  model: 'measured',
  async *stream() {
    yield { type: 'block-start', index: 0, blockType: 'text' }
    for (let i = 0; i < 20; i++) yield { type: 'text-delta', index: 0, text: `word ${i} ` }
    const text = Array.from({ length: 20 }, (_, i) => `word ${i} `).join('')
    yield { type: 'block-end', index: 0, block: { type: 'text', text } }
    yield { type: 'usage', usage: { inputTokens: 5, outputTokens: 20 } }
    yield { type: 'finish', reason: { kind: 'stop' } }
  },
}

/** Bytes of heap and beside it that are in use, all garbage gone. */
async function held() {
  const { gc } = globalThis
  if (gc === undefined) throw new Error('Run it with --expose-gc')
  for (let i = 0; i < 6; i++) {
    gc()
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

/**
 * What closing keeps of a session would be counted as what was there before.
 * @param {import('../dist/log.js').LogStore} store
 */
const withoutCheckpoints = (store) => ({
  ...store,
  /** @param {Parameters<typeof store.acquire>} asked */
  async acquire(...asked) {
    const owner = await store.acquire(...asked)
    Reflect.deleteProperty(owner, 'keep')
    return owner
  },
})

/** @param {string} kind */
async function openStore(kind) {
  const { memoryStore, sqliteStore } = await import('../dist/log.js')
  if (kind === 'memory') return { store: withoutCheckpoints(memoryStore()), remove() {} }
  const folder = mkdtempSync(join(tmpdir(), 'pawl-memory-'))
  return { store: sqliteStore(join(folder, 'log.db')), remove: () => rmSync(folder, { recursive: true }) }
}

/** @param {string} word such as `memory/fresh` */
async function measure(word) {
  const { createAgent } = await import('../dist/index.js')
  const [kind = '', state = ''] = word.split('/')
  const reach = STATES[state]
  if (reach === undefined) throw new Error(`No state "${state}": ${Object.keys(STATES).join(', ')}`)
  const { store, remove } = await openStore(kind)
  /** @type {Agent[]} */
  const agents = []
  let n = 0
  const startOne = async () => {
    const agent = await createAgent({ model, store, sessionId: `session-${n++}` })
    agents.push(agent)
    await reach(agent)
  }
  const start = async (/** @type {number} */ count) => {
    for (let left = count; left > 0; left -= 50) await Promise.all(Array.from({ length: Math.min(50, left) }, startOne))
  }
  const stop = async () => {
    while (agents.length > 0) await Promise.all(agents.splice(-50).map((agent) => agent.close()))
  }
  // What is made once, compiled or grown, is there before anything is measured.
  await start(100)
  await stop()
  const before = await held()
  await start(COUNT)
  // An agent that rests lets go of some of it after a second or two.
  await new Promise((resolve) => setTimeout(resolve, 2_500))
  const full = await held()
  if (values.snapshot !== undefined) v8.writeHeapSnapshot(values.snapshot)
  await stop()
  const after = await held()
  if (values.snapshot !== undefined) v8.writeHeapSnapshot(`${values.snapshot}.after`)
  await store[Symbol.asyncDispose]()
  remove()
  return { agent: (full - after) / COUNT, store: (after - before) / COUNT }
}

const MB = 1_048_576

/** @param {number} sessions @param {number} working @param {number} seconds */
async function crowd(sessions, working, seconds) {
  const { createAgent } = await import('../dist/index.js')
  const { store, remove } = await openStore('sqlite')
  /** @type {Agent[]} */
  const agents = []
  let [peak, ids] = [0, 0]
  const watch = setInterval(() => {
    peak = Math.max(peak, process.memoryUsage.rss())
  }, 100)
  const open = async () => {
    const agent = await createAgent({ model, store, sessionId: `session-${ids++}`, idleAfterMs: 1_000 })
    agents.push(agent)
    await agent.run('hi')
  }
  const began = performance.now()
  for (let left = sessions; left > 0; left -= 50) await Promise.all(Array.from({ length: Math.min(50, left) }, open))
  const opened = performance.now()
  console.log(
    `${sessions} opened, each with a turn, in ${Math.round((opened - began) / 1000)} s, RSS up to ${Math.round(peak / MB)} MB`,
  )
  const until = opened + seconds * 1000
  let turns = 0
  let woken = 0
  const work = async (/** @type {Agent} */ agent) => {
    while (performance.now() < until) {
      await agent.run('more')
      turns += 1
      // Now and then somebody else is asked something, and sleeps again.
      if (turns % 500 === 0) woken += (agents[(turns * 7919) % sessions]?.session.messages().length ?? 0) > 0 ? 1 : 0
    }
  }
  await Promise.all(agents.slice(0, working).map(work))
  clearInterval(watch)
  const heap = await held()
  console.log(
    `${working} of them took ${turns} turns in ${seconds} s, ${woken} others were woken to be read; RSS up to ` +
      `${Math.round(peak / MB)} MB, now ${Math.round(process.memoryUsage.rss() / MB)} MB, of it ${Math.round(heap / MB)} MB heap in use`,
  )
  const closing = performance.now()
  while (agents.length > 0) await Promise.all(agents.splice(-200).map((agent) => agent.close()))
  console.log(`closed in ${Math.round((performance.now() - closing) / 1000)} s`)
  await store[Symbol.asyncDispose]()
  remove()
}

if (values.sessions !== undefined) await crowd(Number(values.sessions), Number(values.working), Number(values.seconds))
else if (values.one !== undefined) console.log(JSON.stringify(await measure(values.one)))
else {
  const script = fileURLToPath(import.meta.url)
  for (const kind of ['memory', 'sqlite']) {
    for (const state of Object.keys(STATES)) {
      const word = `${kind}/${state}`
      if (values.only !== undefined && !word.includes(values.only)) continue
      const figures = [1].map(() => {
        const args = ['--expose-gc', script, '--one', word, '--agents', values.agents]
        const { stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: 'utf8' })
        if (status !== 0) throw new Error(`${word}: ${stderr}`)
        return /** @type {{ agent: number, store: number }} */ (JSON.parse(stdout))
      })
      const median = (/** @type {'agent' | 'store'} */ name) =>
        Math.round(figures.map((one) => one[name]).sort((a, b) => a - b)[0] ?? 0)
      console.log(
        `${word.padEnd(24)} ${String(median('agent')).padStart(7)} B an agent, ${String(median('store')).padStart(7)} B its session in the store`,
      )
    }
  }
}
