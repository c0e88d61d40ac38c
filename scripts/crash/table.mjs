/** What a campaign counted, to read. */

/** @typedef {import('./campaign.mjs').Report} Report */

/** Each must be 0. @type {Record<keyof Report['defects'], string>} */
const DEFECTS = {
  doubled: 'side effects doubled',
  undispatched: 'bodies begun that the log does not know',
  lost: 'acknowledged messages lost',
  twice: 'messages entered twice',
  stuck: 'sessions not resumable, or not verified',
  gone: 'events seen by a reader and then gone',
  unsuspended: 'SIGTERM not answered by a clean suspension',
}

/** @param {Report} report @param {string} again the command that repeats it */
export function table({ by, states, after, terminated, counts, defects, findings, seconds }, again) {
  const signals = by.cli.SIGKILL + by.cli.SIGTERM + by.worker.SIGKILL + by.worker.SIGTERM
  const program = (/** @type {'cli' | 'worker'} */ kind) =>
    `${by[kind].SIGKILL} SIGKILL + ${by[kind].SIGTERM} SIGTERM in ${by[kind].sessions} sessions, ` +
    `0 to ${Math.round(by[kind].undisturbedMs)} ms after the start`
  return [
    `the command line   ${program('cli')}`,
    `a worker program   ${program('worker')}`,
    `${signals} signals in ${seconds.toFixed(0)} s, ${(signals / seconds).toFixed(1)} a second`,
    '',
    'The state of the log at the signal',
    ...rows(states),
    'The last event then',
    ...rows(after),
    'How processes ended that got SIGTERM',
    ...rows(terminated),
    'Looked at',
    ...rows(counts),
    'Must be 0',
    ...Object.entries(DEFECTS).map(([defect, what]) =>
      row(defects[/** @type {keyof typeof DEFECTS} */ (defect)], what),
    ),
    ...(findings.length > 0 ? ['', ...findings] : []),
    '',
    `Again: ${again}   (--only N: session N alone)`,
  ].join('\n')
}

/** @param {Record<string, number>} counts */
const rows = (counts) =>
  Object.entries(counts)
    .sort(([, a], [, b]) => b - a)
    .map(([what, count]) => row(count, what))

/** @param {number} count @param {string} what */
const row = (count, what) => `${String(count).padStart(8)}  ${what}`

/**
 * @param {import('./trace.mjs').Traced} synced
 * @param {import('./trace.mjs').Traced} unsynced of the same run on a store that does not sync
 */
export const traceLines = (synced, unsynced) =>
  [
    `${synced.acknowledged} appends and ${synced.posted} posted commands acknowledged, ${synced.accepted} receipts, ${synced.bodies} tool bodies begun`,
    `${synced.writes} writes to the write-ahead log, ${synced.syncs} syncs of it`,
    `${synced.violations.length} out of order: an acknowledgement or a body before its sync had returned`,
    ...synced.violations,
    '',
    `The same with a store that does not sync: ${unsynced.syncs} syncs, ${unsynced.violations.length} out of order`,
  ].join('\n')
