/**
 * Reads a trace of system calls, as strace writes it, for the order that durability is made of: the append's writes to
 * the write-ahead log, the sync that covers them, and only then the acknowledgement, and the tool's body.
 */

/**
 * A call, by the lines of the trace at which it began and had returned: strace sees a call before the kernel begins it,
 * and again after it is over, so an order of lines is an order of what happened.
 * @typedef {{ name: string, path: string, text: string, begin: number, end: number, failed: boolean }} Call
 */
/** @typedef {{ log: string, markers: string, witness: string }} Paths the write-ahead log, and who wrote what where */
/**
 * @typedef {object} Traced
 * @property {number} acknowledged appends, all of them in order if there are no violations
 * @property {number} posted commands acknowledged, in order as well
 * @property {number} accepted messages whose receipt resolved
 * @property {number} bodies tool bodies that began
 * @property {number} writes to the write-ahead log
 * @property {number} syncs of the write-ahead log
 * @property {readonly string[]} violations
 */

const WHOLE = /^(\d+) +(\w+)\((\d+)<([^>]*)>(?:\(deleted\))?(?:, "((?:[^"\\]|\\.)*)")?.*\) += (-?\d+)/
const BEGUN = /^(\d+) +(\w+)\((\d+)<([^>]*)>(?:\(deleted\))?(?:, "((?:[^"\\]|\\.)*)")?.* <unfinished \.\.\.>$/
const RESUMED = /^(\d+) +<\.\.\. (\w+) resumed>.*\) += (-?\d+)/

/** The calls of a trace in the order in which they began. A call that never returned ends at infinity. @param {string} trace */
export function callsOf(trace) {
  /** @type {Call[]} */
  const calls = []
  /** By thread. @type {Map<string, Call>} */
  const open = new Map()
  for (const [line, content] of trace.split('\n').entries()) {
    const [, resumedBy = '', , returned] = RESUMED.exec(content) ?? []
    const resumed = open.get(resumedBy)
    if (resumed !== undefined) {
      Object.assign(resumed, { end: line, failed: Number(returned) < 0 })
      open.delete(resumedBy)
      continue
    }
    const unfinished = BEGUN.exec(content)
    const [, thread = '', name = '', , path = '', text = '', result = '0'] = unfinished ?? WHOLE.exec(content) ?? []
    if (name === '') continue
    /** @type {Call} */
    const call = { name, path, text, begin: line, end: line, failed: Number(result) < 0 }
    if (unfinished) open.set(thread, Object.assign(call, { end: Number.POSITIVE_INFINITY }))
    calls.push(call)
  }
  return calls
}

/** A posted command has no events. @typedef {{ n: number, seq: number, count: number, runs: readonly string[], asked: number, acked: number, synced: number }} Append */

/** @param {string} trace @param {Paths} paths @returns {Traced} */
export function readTrace(trace, paths) {
  const calls = callsOf(trace)
  const log = calls.filter(({ path }) => path === paths.log)
  const writes = log.filter(({ name }) => /^p?writev?/.test(name))
  const syncs = log.filter(({ name, failed }) => /^f(data)?sync$/.test(name) && !failed)
  const markers = calls.filter(({ path }) => path === paths.markers)
  const appends = appendsOf(markers)
  /** @type {string[]} */
  const violations = []
  for (const append of appends.values()) violations.push(...cover(append, writes, syncs))
  const accepted = markers.filter(({ text }) => text.startsWith('accepted '))
  for (const { text, begin } of accepted) {
    const seq = Number(/\d+/.exec(text)?.[0])
    const by = [...appends.values()].find((one) => one.seq <= seq && seq < one.seq + one.count)
    if (by === undefined || by.synced > begin) violations.push(`the message at ${seq} was accepted before its sync`)
  }
  const bodies = calls.filter(({ path, text }) => path === paths.witness && text.includes('\\"began\\"'))
  for (const { text, begin } of bodies) {
    const run = runOf(text)
    const by = [...appends.values()].find(({ runs }) => runs.includes(run))
    if (by === undefined || by.synced > begin)
      violations.push(`the body of ${run} began before the sync of its dispatch`)
  }
  const acknowledged = [...appends.values()].filter(({ acked }) => acked < Number.POSITIVE_INFINITY)
  const posted = acknowledged.filter(({ seq }) => seq < 0).length
  return {
    acknowledged: acknowledged.length - posted,
    posted,
    accepted: accepted.length,
    bodies: bodies.length,
    writes: writes.length,
    syncs: syncs.length,
    violations,
  }
}

/** @param {readonly Call[]} markers @returns {Map<number, Append>} */
function appendsOf(markers) {
  /** @type {Map<number, Append>} */
  const appends = new Map()
  for (const { text, begin, end } of markers) {
    const [, n, seq = -1, count = 0, runs = ''] = /^ask (\d+) (?:post|(\d+) (\d+) (\S*))\\n$/.exec(text) ?? []
    if (n !== undefined) {
      appends.set(Number(n), {
        n: Number(n),
        seq: Number(seq),
        count: Number(count),
        runs: runs.split(',').filter(Boolean),
        asked: end,
        acked: Number.POSITIVE_INFINITY,
        synced: Number.POSITIVE_INFINITY,
      })
    }
    const append = appends.get(Number(/^ack (\d+)\\n$/.exec(text)?.[1]))
    if (append !== undefined) append.acked = begin
  }
  return appends
}

/**
 * The first sync that began after the append's last write had returned; it must have returned before the append was
 * acknowledged. Notes in the append where that was.
 * @param {Append} append @param {readonly Call[]} writes @param {readonly Call[]} syncs
 * @returns {string[]}
 */
function cover(append, writes, syncs) {
  const { n, asked, acked } = append
  const own = writes.filter(({ begin }) => begin > asked && begin < acked)
  if (own.length === 0) return [`append ${n} was acknowledged and nothing was written`]
  const written = Math.max(...own.map(({ end }) => end))
  const sync = syncs.find(({ begin }) => begin > written)
  append.synced = sync?.end ?? Number.POSITIVE_INFINITY
  if (acked === Number.POSITIVE_INFINITY || append.synced < acked) return []
  return [`append ${n} was acknowledged at line ${acked + 1} of the trace, before a sync of what it wrote had returned`]
}

/** The call and run of a witness line, whose quotes strace has escaped. @param {string} text */
function runOf(text) {
  const callId = /\\"callId\\":\\"([^"\\]+)/.exec(text)?.[1]
  return `${callId}/${/\\"run\\":(\d+)/.exec(text)?.[1]}`
}
