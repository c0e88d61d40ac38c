/**
 * What a release's logs are made of: lives, each a row of acts that leave one session, or a few, in a store. An act is
 * a process: it ends in order, or is killed by its own hand, so that a crash in a log is one.
 */

/** @typedef {import('../../dist/index.js').TurnEndReason} TurnEndReason */
/** @typedef {import('./stage.mjs').Stage} Stage */
/** @typedef {(stage: Stage) => Promise<unknown>} Act */

/**
 * A tool that a log needs when it is opened again, as data, so that whoever opens it can make one.
 * @typedef {object} NeededTool
 * @property {string} name
 * @property {'parallel' | 'exclusive'} [mode] 'exclusive'
 * @property {'unknown' | 'rerun' | 'ask' | 'probe'} [onCrash] 'unknown'
 * @property {'done' | 'not-done' | 'unknown'} [probe] what its probe answers
 * @property {true} [needsApproval]
 * @property {number} [approvalExpiresMs]
 */

/**
 * What opening a log leads to, once nothing more happens by itself.
 * @typedef {object} Outcome
 * @property {readonly { turn: number, reason: TurnEndReason }[]} turns that ended, in order
 * @property {readonly string[]} ran bodies, as `NAME CALL RUN`, sorted
 * @property {readonly string[]} probed calls, as `NAME CALL`, sorted
 * @property {readonly string[]} parked texts of the messages that still wait
 * @property {Readonly<Record<string, string>>} mail what became of each posted command: 'taken', or why it was refused
 */

/**
 * How a log is opened again.
 * @typedef {object} Opening
 * @property {{ recovery?: 'interrupt', maxResumes?: number }} options of the agent
 * @property {readonly NeededTool[]} tools
 * @property {number} afterMs from the log's last event
 * @property {Readonly<Record<string, 'approve' | 'deny' | 'expire'>>} answers to approvals, by call
 * @property {boolean} wake what is parked is started
 * @property {Outcome} leadsTo
 */

/** @typedef {Partial<Omit<Opening, 'leadsTo'>> & Partial<Outcome>} OpeningWords */

/**
 * One session that a life leaves.
 * @typedef {object} Left
 * @property {string} [id] of the session; its name, unless given
 * @property {string} shows
 * @property {string} state of the chart, in which its log ends
 * @property {Opening} opened
 */

/**
 * @typedef {object} Life
 * @property {Readonly<Record<string, Left>>} sessions by name, the one that the acts are about first
 * @property {readonly Act[]} acts
 */

/** @param {OpeningWords} words @returns {Opening} */
function opening({ options = {}, tools = [], afterMs = 1_000, answers = {}, wake = false, ...outcome }) {
  const leadsTo = { turns: [], ran: [], probed: [], parked: [], mail: {}, ...outcome }
  return { options, tools, afterMs, answers, wake, leadsTo }
}

/** A session, as it is left. @param {string} shows @param {string} state @param {OpeningWords} [opened] @returns {Left} */
export const left = (shows, state, opened = {}) => ({ shows, state, opened: opening(opened) })

/** A life that leaves its one session at rest, where opening it does nothing. @param {string} shows @param {...Act} acts */
export const atRest = (shows, ...acts) => ({ left: left(shows, 'idle'), acts })

/** The same, of a session whose id is no file's name. @param {string} id @param {string} shows @param {...Act} acts */
export const named = (id, shows, ...acts) => ({ left: { id, ...left(shows, 'idle') }, acts })

/**
 * Lives by the name of their session, for those that leave one.
 * @param {Readonly<Record<string, { left: Left, acts: readonly Act[] }>>} lives
 * @returns {readonly Life[]}
 */
export const each = (lives) =>
  Object.entries(lives).map(([name, { left, acts }]) => ({ sessions: { [name]: left }, acts }))

/** The end of a turn that went well. */
export const completed = (turn = 1) => ({ turn, reason: /** @type {const} */ ({ kind: 'completed' }) })

/** The end of a turn that a person cancelled. */
export const aborted = (turn = 1) => ({
  turn,
  reason: /** @type {const} */ ({ kind: 'aborted', cause: { kind: 'user' } }),
})
