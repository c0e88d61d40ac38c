/**
 * One session of the campaign, as it is known from outside: what was said to it, what it acknowledged, what readers
 * saw, and the next process that carries it on. Two kinds: those of the command line, and those of the worker.
 */
import { fold, stateName } from '../../dist/machines.js'
import { digestOf } from './checks.mjs'
import { live } from './life.mjs'

/** @typedef {import('./checks.mjs').SessionEvent} SessionEvent */
/** @typedef {import('./checks.mjs').Acknowledged} Acknowledged */
/** @typedef {import('./life.mjs').Life} Life */
/** @typedef {import('./life.mjs').Fate} Fate */
/** @typedef {import('./stage.mjs').Stage} Stage */
/** @typedef {import('./worker.mjs').Said} Said */
/** @typedef {'cli' | 'worker'} Kind */

/**
 * @typedef {object} Session
 * @property {string} id
 * @property {Kind} kind
 * @property {readonly SessionEvent[]} events what is known of its log
 * @property {readonly Acknowledged[]} acknowledged
 * @property {(more: boolean, fate?: Fate) => Promise<Life>} live a process carries it on; with `more` something new is said
 * @property {() => Promise<void>} post a message is left by this process, where the session exists
 * @property {() => Promise<void>} look reads what is new of the log
 * @property {() => boolean} rests nothing is open and nothing waits
 * @property {() => boolean} finished nothing is open
 * @property {() => number} untaken messages that were acknowledged and are not in the log yet
 * @property {() => Promise<readonly (readonly [number, string])[]>} seen what readers saw, once they are at the head
 */

/** How long a reader may lag behind at the end, in ms. */
const READER_MS = 10_000

/** @param {Stage} stage @param {string} id @param {Kind} kind @returns {Session} */
export function openSession(stage, id, kind) {
  /** @type {SessionEvent[]} */
  const events = []
  /** @type {Acknowledged[]} */
  const acknowledged = []
  /** @type {(readonly [number, string])[]} */
  const seen = []
  const reading = new AbortController()
  /** @type {Promise<void> | undefined} */
  let reader
  let followed = 0
  let said = 0
  /** What is not known to have been accepted. @type {Said[]} */
  let open = []

  const see = (/** @type {SessionEvent} */ event) => void seen.push([event.seq, digestOf(JSON.stringify(event))])
  const fresh = (/** @type {Said['kind']} */ how) => ({ id: `${id}-${how[0]}${++said}`, kind: how })

  async function follow() {
    for await (const event of stage.store.subscribe(id, { from: 0, signal: reading.signal })) {
      see(event)
      followed = event.seq + 1
    }
  }

  async function lookNow() {
    if ((await stage.store.header(id)) === undefined) return
    reader ??= follow().catch((error) => {
      if (!reading.signal.aborted) seen.push([-1, `the reader failed: ${error}`])
    })
    for await (const event of stage.store.read(id, { from: events.length })) events.push(event)
  }

  let looking = Promise.resolve()
  /** One look after the other, so that no event is taken twice. */
  function look() {
    looking = looking.then(lookNow)
    return looking
  }

  /** @param {boolean} more @param {Fate} [fate] */
  async function liveAsWorker(more, fate) {
    if (more) open = [...open, fresh('followup'), fresh(said % 3 === 0 ? 'inject' : 'steer'), fresh('followup')]
    const life = await live(stage.worker(id, open), fate)
    for (const line of wholeLines(life.out)) {
      const [, message = '', seq] = /^ack (\S+) (\d+)$/.exec(line) ?? []
      acknowledged.push({ id: message, seq: Number(seq) })
    }
    open = open.filter((one) => !acknowledged.some((ack) => ack.id === one.id))
    return life
  }

  /** @param {boolean} more @param {Fate} [fate] */
  async function liveAsCli(more, fate) {
    if (open.length === 0 && (more || events.length === 0)) open = [fresh('followup')]
    const [prompt] = open
    const run = prompt === undefined ? ['resume', id] : ['run', `task ${prompt.id}`, '--session', id]
    const life = await live(stage.pawl(...run, ...stage.flags), fate)
    for (const line of wholeLines(life.out)) {
      /** @type {SessionEvent} */
      const event = JSON.parse(line)
      seen.push([event.seq, digestOf(line)])
      acknowledged.push(...insertedBy(event).map((message) => ({ id: message, seq: event.seq })))
    }
    await look()
    // What is in the log need not be said again, also where nobody was told.
    if (prompt !== undefined && events.some((event) => isPrompt(event, `task ${prompt.id}`))) open = []
    return life
  }

  return {
    id,
    kind,
    events,
    acknowledged,
    live: kind === 'cli' ? liveAsCli : liveAsWorker,
    look,
    async post() {
      if ((await stage.store.header(id)) === undefined) return
      const how = /** @type {const} */ (['followup', 'steer', 'inject'])[said % 3] ?? 'followup'
      const { id: message } = fresh(how)
      const content = [{ type: /** @type {const} */ ('text'), text: `task ${message}` }]
      await stage.store.post(id, {
        id: `post-${message}`,
        kind: how,
        message: { id: message, role: 'user', content, source: { kind: 'user' } },
      })
      acknowledged.push({ id: message })
    },
    finished: () => stateName(fold(events)) === 'idle',
    rests: () => {
      const state = fold(events)
      return stateName(state) === 'idle' && Object.values(state.context.inbox).flat().length + open.length === 0
    },
    untaken: () => {
      const taken = new Set(events.flatMap(insertedBy))
      return acknowledged.filter(({ id: message }) => !taken.has(message)).length
    },
    async seen() {
      const deadline = Date.now() + READER_MS
      while (followed < events.length && Date.now() < deadline) await new Promise((done) => setTimeout(done, 20))
      reading.abort()
      await reader
      if (followed < events.length) seen.push([-1, `the reader saw ${followed} of ${events.length} events`])
      return seen
    },
  }
}

/** A last line that was cut off is left out. @param {string} text */
const wholeLines = (text) => text.split('\n').slice(0, -1).filter(Boolean)

/** @param {SessionEvent} event @returns {string[]} */
function insertedBy(event) {
  if (event.type !== 'agent/inbox/spliced') return []
  return event.data.inserted.flatMap((item) => (item.kind === 'message' ? [item.message.id] : []))
}

/** @param {SessionEvent} event @param {string} text */
function isPrompt(event, text) {
  if (event.type !== 'agent/inbox/spliced') return false
  return event.data.inserted.some(
    (item) =>
      item.kind === 'message' && item.message.content.some((block) => block.type === 'text' && block.text === text),
  )
}
