/**
 * The campaign: sessions in one database, whose processes are killed at moments drawn from a seed, carried on, and
 * checked from outside. What is killed and when is the seed's; what the process was doing just then is the machine's.
 */
import { readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { fold, stateName, verify } from '../../dist/machines.js'
import { findingsOf } from './checks.mjs'
import { live } from './life.mjs'
import { quota } from './quota.mjs'
import { random } from './random.mjs'
import { openSession } from './session.mjs'
import { readWitness } from './tools.mjs'

/** @typedef {import('./session.mjs').Session} Session */
/** @typedef {import('./session.mjs').Kind} Kind */
/** @typedef {import('./stage.mjs').Stage} Stage */
/** @typedef {import('./life.mjs').Life} Life */
/** @typedef {import('./life.mjs').Fate} Fate */
/** @typedef {import('./random.mjs').Random} Random */
/** @typedef {import('./checks.mjs').Defect | 'stuck' | 'unsuspended'} Defect */
/**
 * @typedef {object} Options
 * @property {number} kills with SIGKILL
 * @property {number} terms with SIGTERM
 * @property {string} seed
 * @property {number} lanes processes at a time
 * @property {number} bursts of signals a session gets at most
 * @property {readonly [least: number, most: number]} row signals in a row; then it is carried on undisturbed
 * @property {number} [withinMs] signals come within this time instead of the length of an undisturbed life
 * @property {number} [withinEvents] a third of the signals come once the process has recorded so many events at most, however
 *   slow the machine is; the others come by the clock
 * @property {number} [minutes] after so long no more signals are sent
 * @property {number} [only] plays this session alone
 * @property {(line: string) => void} say
 */
/**
 * @typedef {object} Report
 * @property {Record<Kind, { SIGKILL: number, SIGTERM: number, sessions: number, undisturbedMs: number }>} by
 * @property {Record<string, number>} states the log's state at the signal, or what the process had not yet done
 * @property {Record<string, number>} after the last event at the signal
 * @property {Record<string, number>} terminated how processes ended that got SIGTERM
 * @property {Record<string, number>} counts of what was looked at
 * @property {Record<Defect, number>} defects each must be 0
 * @property {readonly string[]} findings
 * @property {number} seconds
 */

/** @type {readonly Kind[]} */
const KINDS = ['cli', 'worker']
/** Lives that a session gets to come to rest undisturbed. */
const REST_LIVES = 6

/** @param {Stage} stage @param {Options} options @returns {Promise<Report>} */
export async function campaign(stage, options) {
  const begun = performance.now()
  const report = emptyReport()
  const signals = quota(options.kills, options.terms)
  await measure(stage, options, report)
  const bound = options.minutes === undefined ? undefined : setTimeout(signals.close, options.minutes * 60_000)
  let next = options.only ?? 1
  const lane = async () => {
    while (signals.left() > 0 && (options.only === undefined || next === options.only)) {
      const n = next++
      const kind = KINDS[n % 2] ?? 'cli'
      await play({ stage, options, report, signals, kind, n, draw: random(`${options.seed}/${n}`) })
      options.say(`session ${n} (${kind}): ${signals.left()} signals left, ${report.findings.length} findings`)
    }
  }
  await Promise.all(Array.from({ length: options.lanes }, lane))
  clearTimeout(bound)
  report.seconds = (performance.now() - begun) / 1000
  return report
}

/** @returns {Report & { findings: string[] }} */
function emptyReport() {
  const of = () => ({ SIGKILL: 0, SIGTERM: 0, sessions: 0, undisturbedMs: 0 })
  return {
    by: { cli: of(), worker: of() },
    states: {},
    after: {},
    terminated: {},
    counts: {},
    defects: { doubled: 0, undispatched: 0, lost: 0, twice: 0, stuck: 0, gone: 0, unsuspended: 0 },
    findings: [],
    seconds: 0,
  }
}

/**
 * How long a life takes that nobody disturbs, with as many at a time as later: signals are drawn from this time.
 * @param {Stage} stage @param {Options} options @param {Report} report
 */
async function measure(stage, { lanes, withinMs, say }, report) {
  const measured = Array.from({ length: Math.max(2, lanes) }, async (_, i) => {
    const kind = KINDS[i % 2] ?? 'cli'
    if (withinMs !== undefined) return { kind, ms: withinMs }
    return { kind, ms: (await openSession(stage, `undisturbed${i}`, kind).live(true)).ms }
  })
  const lives = await Promise.all(measured)
  for (const kind of KINDS) {
    const times = lives.filter((life) => life.kind === kind).map(({ ms }) => ms)
    report.by[kind].undisturbedMs = times.reduce((sum, ms) => sum + ms, 0) / times.length
  }
  say(`undisturbed: ${KINDS.map((kind) => `${kind} ${Math.round(report.by[kind].undisturbedMs)} ms`).join(', ')}`)
}

/**
 * @typedef {object} Play
 * @property {Stage} stage
 * @property {Options} options
 * @property {ReturnType<typeof emptyReport>} report
 * @property {import('./quota.mjs').Quota} signals
 * @property {Kind} kind
 * @property {number} n
 * @property {Random} draw
 */

/** @param {Play} play */
async function play(play) {
  const { stage, options, report, signals, kind, n, draw } = play
  const session = openSession(stage, `s${n}`, kind)
  const found = (/** @type {Defect} */ defect, /** @type {string} */ text) => {
    report.defects[defect] += 1
    report.findings.push(`session ${session.id} (${kind}, --only ${n}): ${defect}: ${text}`)
    options.say(`FOUND in ${report.findings.at(-1)}`)
  }
  report.by[kind].sessions += 1
  for (let burst = 0; burst < options.bursts && signals.left() > 0; burst++) {
    const [least, most] = options.row
    const row = least + Math.floor(draw() * (most - least + 1))
    for (let i = 0; i < row && signals.left() > 0; i++) await killedLife(play, session, i === 0, found)
    if (!(await comesToRest(session, found, session.finished))) return
  }
  if (!(await comesToRest(session, found, session.rests))) return
  // What was posted as a process ended is for the next one.
  for (let i = 0; i < REST_LIVES && session.untaken() > 0; i++) {
    if (!(await comesToRest(session, found, session.rests))) return
  }
  const verified = await live(stage.pawl('verify', session.id))
  if (verified.code !== 0) found('stuck', `pawl verify: ${verified.out}${verified.err}`)
  await check(play, session, found)
}

/** @param {Play} play @param {Session} session @param {boolean} more @param {(defect: Defect, text: string) => void} found */
async function killedLife({ options, report, signals, kind, draw }, session, more, found) {
  const signal = signals.take(draw())
  const afterMs = draw() * report.by[kind].undisturbedMs
  const postAfterMs = draw() < 0.4 ? draw() * report.by[kind].undisturbedMs : undefined
  const before = session.events.length
  const head = draw() < 0.35 && options.withinEvents !== undefined ? before + draw() * options.withinEvents : undefined
  const posting = postAfterMs === undefined ? undefined : after(postAfterMs, session.post)
  const moment = head === undefined ? later(afterMs) : reaching(session, head)
  const life = await session.live(more, { signal, moment })
  await posting
  await session.look()
  if (!life.signalled) {
    signals.giveBack(signal)
    tally(report.counts, 'lives that ended before their signal')
    if (!isWell(session, life.code)) found('stuck', `exit code ${life.code}, ${lastEnd(session)}: ${life.err.trim()}`)
    return
  }
  report.by[kind][signal] += 1
  const last = session.events.at(-1)
  const recorded = session.events.length > before
  tally(report.states, recorded ? stateName(fold(session.events)) : 'opening (it had recorded nothing)')
  if (recorded && last !== undefined) tally(report.after, last.type)
  if (signal === 'SIGTERM') judgeTerm(report, session, { life, before }, found)
}

/**
 * A process whose work was done when the signal came may have suspended a turn that was not its own, and exits 0.
 * @param {Play['report']} report @param {Session} session
 * @param {{ life: Life, before: number }} about before: the head when the process was started
 * @param {(defect: Defect, text: string) => void} found
 */
function judgeTerm(report, session, { life: { code, signal, err }, before }, found) {
  const { events } = session
  const recorded = events.length > before
  const done = events.slice(before).some(({ type }) => type === 'turn/end')
  const open = stateName(fold(events)) !== 'idle'
  const suspended = events.at(-1)?.type === 'session/suspended'
  const how = code === null ? `${signal}` : `exit code ${code}`
  const where = !recorded
    ? 'before it recorded anything'
    : suspended
      ? 'suspended'
      : open
        ? 'a turn left open'
        : 'at rest'
  tally(report.terminated, `${how}, ${where}`)
  const well =
    open && recorded
      ? suspended && (code === 143 || (code === 0 && done))
      : code === 143 || code === 0 || signal === 'SIGTERM'
  if (!well) found('unsuspended', `${how}, ${where}, after ${events.at(-1)?.type} ${err.trim().slice(0, 300)}`)
}

/** A resume after a clean suspension is not counted. @param {Session} session @param {(defect: Defect, text: string) => void} found */
function judgeResumes({ events }, found) {
  let count = 0
  for (const [at, event] of events.entries()) {
    if (event.type !== 'session/resumed' || events[at - 1]?.type !== 'session/suspended') continue
    count += 1
    const counted = fold(events.slice(0, at)).context.resumes
    if (event.data.resumes > counted) found('unsuspended', `event ${at} counts a resume after a suspension`)
  }
  return count
}

/** How the last turn ended. @param {Session} session */
const lastEnd = ({ events }) => {
  const end = events.findLast(({ type }) => type === 'turn/end')
  return end?.type === 'turn/end' ? end.data.reason.kind : 'no turn'
}

/**
 * Exit codes of lives that did what they should, also where their turn did not: recovered too often, or, with many tasks
 * in one turn, asked for the same call too often by a model that has few.
 * @param {Session} session @param {number | null | undefined} code
 */
const isWell = (session, code) =>
  code === 0 ||
  (code === 2 && lastEnd(session) === 'interrupted') ||
  (code === 4 && lastEnd(session) === 'repeated-call')

/**
 * Undisturbed lives until it is so; false, and found, where that never comes.
 * @param {Session} session @param {(defect: Defect, text: string) => void} found @param {() => boolean} isSo
 */
async function comesToRest(session, found, isSo) {
  /** @type {Life | undefined} */
  let life
  for (let i = 0; i < REST_LIVES; i++) {
    // Something new wakes what an interrupted turn parked; without it, what is open is carried on.
    life = await session.live(session.finished() && i > 0)
    await session.look()
    if (!isWell(session, life.code)) break
    const verdict = verify(session.events)
    if (!verdict.ok) {
      found('stuck', `seq ${verdict.violations[0].seq}: ${verdict.violations[0].message}`)
      return false
    }
    if (isSo()) return true
  }
  found(
    'stuck',
    `exit code ${life?.code} ${life?.signal ?? ''}, last ${session.events.at(-1)?.type}, ${lastEnd(session)}: ${life?.err.trim()}`,
  )
  return false
}

/** @param {Play} play @param {Session} session @param {(defect: Defect, text: string) => void} found */
async function check({ stage, report }, session, found) {
  const { id, acknowledged } = session
  /** @type {import('./checks.mjs').SessionEvent[]} */
  const events = []
  for await (const event of stage.store.read(id)) events.push(event)
  const seen = await session.seen()
  const witness = readWitness(stage.witness).filter((line) => line.session === id)
  const commands = readCommands(stage.commands).filter(({ token }) => token.startsWith(`${id}-`))
  for (const { defect, text } of findingsOf({ events, witness, commands, acknowledged, seen })) found(defect, text)
  const begun = witness.filter(({ what }) => what === 'began')
  const add = (/** @type {string} */ what, /** @type {number} */ count) => tally(report.counts, what, count)
  add('events in the final logs', events.length)
  add('events seen by readers', seen.length)
  add('messages acknowledged', new Set(acknowledged.map((one) => one.id)).size)
  add('of these, posted by another process', acknowledged.filter(({ seq }) => seq === undefined).length)
  add('tool bodies begun (worker)', begun.length)
  add('of these, run again with leave', begun.filter(({ run }) => run > 1).length)
  add('shell commands begun (cli)', commands.filter(({ what }) => what === 'began').length)
  add('calls answered as unknown', events.filter(isUnknown).length)
  add('turns given up after three recoveries', events.filter(isGivenUp).length)
  add('resumes after a suspension', judgeResumes(session, found))
}

/** @param {import('./checks.mjs').SessionEvent} event */
const isUnknown = (event) => event.type === 'tool/result' && event.data.error?.code === 'TOOL_OUTCOME_UNKNOWN'
/** @param {import('./checks.mjs').SessionEvent} event */
const isGivenUp = (event) => event.type === 'session/resumed' && event.data.cause === 'recovery-limit'

/** @param {string} path @returns {import('./checks.mjs').CommandLine[]} */
function readCommands(path) {
  try {
    return readFileSync(path, 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return []
    throw error
  }
}

/** @param {Record<string, number>} counts @param {string} what @param {number} [by] */
function tally(counts, what, by = 1) {
  counts[what] = (counts[what] ?? 0) + by
}

/** @param {number} ms @param {() => Promise<void>} work */
const after = async (ms, work) => {
  await pause(ms)
  await work()
}

/** @param {number} ms @returns {Fate['moment']} */
const later = (ms) => (over) =>
  pause(ms, undefined, { signal: over }).catch(() => {
    // The process ended by itself.
  })

/** @param {Session} session @param {number} head @returns {Fate['moment']} */
const reaching = (session, head) => async (over) => {
  while (!over.aborted && session.events.length <= head) {
    await session.look()
    await pause(30)
  }
}
