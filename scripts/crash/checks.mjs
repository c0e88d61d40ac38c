/**
 * What must hold of a session that was killed again and again, told from outside: from its final log, from what tool
 * bodies left in a witness file, from what its processes were promised, and from what readers saw.
 */
import { createHash } from 'node:crypto'

/** @typedef {import('../../dist/log.js').SessionEvent} SessionEvent */
/** @typedef {import('./tools.mjs').WitnessLine} WitnessLine */
/** @typedef {{ token: string, what: 'began' | 'done' }} CommandLine what a shell command of the CLI left */
/** @typedef {{ id: string, seq?: number }} Acknowledged a message, and where it was said to stand */
/**
 * @typedef {object} Evidence
 * @property {readonly SessionEvent[]} events the final log
 * @property {readonly WitnessLine[]} witness of this session
 * @property {readonly CommandLine[]} commands of this session
 * @property {readonly Acknowledged[]} acknowledged
 * @property {readonly (readonly [seq: number, digest: string])[]} seen by readers, at any time
 */
/** Each must be 0. @typedef {'doubled' | 'undispatched' | 'lost' | 'twice' | 'gone'} Defect */
/** @typedef {{ defect: Defect, text: string }} Finding */

/** @param {Evidence} evidence @returns {Finding[]} */
export function findingsOf({ events, witness, commands, acknowledged, seen }) {
  return [
    ...bodies(events, witness),
    ...shellCommands(events, commands),
    ...messages(events, acknowledged),
    ...readEvents(events, seen),
  ]
}

/** What an event is told apart by. @param {string} json */
export const digestOf = (json) => createHash('sha256').update(json).digest('base64')

/** @template {SessionEvent['type']} T @param {readonly SessionEvent[]} events @param {T} type */
export const ofType = (events, type) =>
  events.filter((event) => event.type === type).map((event) => /** @type {SessionEvent & { type: T }} */ (event))

/** @template T @param {readonly T[]} items @param {(item: T) => string} keyOf @returns {Map<string, T[]>} */
function grouped(items, keyOf) {
  /** @type {Map<string, T[]>} */
  const groups = new Map()
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item])
  return groups
}

/**
 * A body begins once for each run, a run after the first has its authority, and both stand in the log before.
 * @param {readonly SessionEvent[]} events @param {readonly WitnessLine[]} witness
 */
function bodies(events, witness) {
  /** @type {Finding[]} */
  const findings = []
  for (const [callId, lines] of grouped(witness, (line) => line.callId)) {
    const begun = lines.filter(({ what }) => what === 'began')
    const doubled = (/** @type {string} */ text) => findings.push({ defect: 'doubled', text: `${callId}: ${text}` })
    if (new Set(lines.map(({ key }) => key)).size > 1) doubled('its idempotency key changed')
    if (begun.length > new Set(begun.map(({ run }) => run)).size) doubled('a run began twice')
    for (const { run, tool } of begun) {
      if (!isDispatched(events, callId, run)) {
        findings.push({ defect: 'undispatched', text: `${callId}: run ${run} began and is not in the log` })
      }
      if (run > 1 && !mayRunAgain(tool, { callId, run }, events, lines)) doubled(`${tool} ran again as run ${run}`)
    }
    const effects = lines.filter(({ what }) => what === 'effect').length
    if (effects > 1 && ONCE.has(lines[0]?.tool ?? '')) doubled(`its effect was done ${effects} times`)
  }
  return findings
}

/** Tools whose effect is done at most once, whatever happens. */
const ONCE = new Set(['effect_unknown', 'effect_probe'])

/** @param {readonly SessionEvent[]} events @param {string} callId @param {number} run */
const isDispatched = (events, callId, run) =>
  ofType(events, 'tool/dispatch').some(({ data }) => data.callId === callId && data.run === run)

/**
 * @param {string} tool @param {{ callId: string, run: number }} again
 * @param {readonly SessionEvent[]} events @param {readonly WitnessLine[]} lines of the call
 */
function mayRunAgain(tool, { callId, run }, events, lines) {
  if (tool === 'effect_rerun') return true
  if (tool === 'effect_probe') return lines.some(({ what, answer }) => what === 'probed' && answer === 'not-done')
  if (tool !== 'effect_ask') return false
  const asked = ofType(events, 'tool/approval-requested').filter(({ data }) => data.callId === callId)
  const resolved = ofType(events, 'tool/approval-resolved').filter(({ data }) => data.callId === callId)
  return asked.some(
    ({ data: { run: at, purpose } }) =>
      at === run - 1 &&
      purpose === 'rerun' &&
      resolved.some(({ data }) => data.run === at && data.decision === 'approved'),
  )
}

/**
 * Commands of the shell are never run again: nobody can know what they did.
 * @param {readonly SessionEvent[]} events @param {readonly CommandLine[]} commands
 */
function shellCommands(events, commands) {
  const calls = ofType(events, 'tool/call')
  /** @type {Finding[]} */
  const findings = []
  for (const [token, lines] of grouped(commands, (line) => line.token)) {
    const begun = lines.filter(({ what }) => what === 'began').length
    if (begun > 1) findings.push({ defect: 'doubled', text: `command ${token} began ${begun} times` })
    const call = calls.find(({ data }) => data.arguments.includes(token))
    if (call === undefined || !isDispatched(events, call.data.callId, 1)) {
      findings.push({ defect: 'undispatched', text: `command ${token} began and is not in the log` })
    }
  }
  return findings
}

/**
 * What was accepted stands where it was said to stand, and entered once.
 * @param {readonly SessionEvent[]} events @param {readonly Acknowledged[]} acknowledged
 */
function messages(events, acknowledged) {
  /** @type {Map<string, number[]>} */
  const inserted = new Map()
  for (const { seq, data } of ofType(events, 'agent/inbox/spliced')) {
    for (const item of data.inserted) {
      if (item.kind === 'message') inserted.set(item.message.id, [...(inserted.get(item.message.id) ?? []), seq])
    }
  }
  const entered = grouped(ofType(events, 'user/message'), ({ data }) => data.id)
  /** @type {Finding[]} */
  const findings = []
  for (const { id, seq } of acknowledged) {
    const at = inserted.get(id) ?? []
    if (at.length === 0) findings.push({ defect: 'lost', text: `message ${id} was accepted and is not in the log` })
    else if (seq !== undefined && !at.includes(seq)) {
      findings.push({ defect: 'lost', text: `message ${id} was accepted as event ${seq}, and stands at ${at}` })
    } else if (!entered.has(id)) findings.push({ defect: 'lost', text: `message ${id} was accepted and never entered` })
  }
  for (const [id, times] of entered) {
    if (times.length > 1) findings.push({ defect: 'twice', text: `message ${id} entered ${times.length} times` })
  }
  return findings
}

/** @param {readonly SessionEvent[]} events @param {Evidence['seen']} seen */
function readEvents(events, seen) {
  const digests = events.map((event) => digestOf(JSON.stringify(event)))
  return seen
    .filter(([seq, digest]) => digests[seq] !== digest)
    .map(([seq]) => {
      /** @type {Finding} */
      const finding = { defect: 'gone', text: `event ${seq} was seen and is ${events[seq] ? 'another now' : 'gone'}` }
      return finding
    })
}
