/** Counts against what they may be. Pure: the figures come from `count.mjs`, the allowances from `guard.json`. */

/** @typedef {{ readonly allowed: number, readonly reason: string }} Allowance */
/** By store, unit and count. @typedef {Record<string, Record<string, Record<string, number>>>} Figures */
/** The same keys. @typedef {Record<string, Record<string, Record<string, Allowance>>>} Allowances */

/**
 * @typedef {object} Verdict
 * @property {string} store
 * @property {string} unit
 * @property {string} what
 * @property {number | undefined} measured
 * @property {number | undefined} allowed
 * @property {'fine' | 'above' | 'well below' | 'no reason' | 'no allowance' | 'not counted'} says
 */

/**
 * How much above its allowance a count is still fine: how often an answer of the disk finds the main thread waiting is
 * chance, and that changes what is called. What the disk is asked is not left to chance.
 * @type {Readonly<Record<string, number>>}
 */
const TOLERANCE = { calls: 0.02, xstate: 0.02, promises: 0.02, frames: 0.02 }

/** What a count with a tolerance may be more in any case: a twentieth of a call a burst is one of the whole life. */
const SLACK = 0.1

/** So far below its allowance, a count has become better, and the allowance is to follow. */
const WELL_BELOW = 0.05

/** @param {Figures} figures @param {Allowances} allowances @returns {Verdict[]} */
export function judge(figures, allowances) {
  return keysOf(figures, allowances).map(([store, unit, what]) => {
    const measured = figures[store]?.[unit]?.[what]
    const allowance = allowances[store]?.[unit]?.[what]
    return { store, unit, what, measured, allowed: allowance?.allowed, says: verdict(what, measured, allowance) }
  })
}

/** What must not be handed in. @param {readonly Verdict[]} verdicts */
export const failures = (verdicts) => verdicts.filter(({ says }) => says !== 'fine' && says !== 'well below')

/** @param {string} what @param {number | undefined} measured @param {Allowance | undefined} allowance @returns {Verdict['says']} */
function verdict(what, measured, allowance) {
  if (allowance === undefined) return 'no allowance'
  if (typeof allowance.reason !== 'string' || allowance.reason.trim() === '') return 'no reason'
  if (measured === undefined) return 'not counted'
  const { allowed } = allowance
  const tolerance = TOLERANCE[what]
  if (tolerance === undefined) return measured > allowed ? 'above' : measured < allowed ? 'well below' : 'fine'
  if (measured > allowed * (1 + tolerance) + SLACK) return 'above'
  return measured < allowed * (1 - WELL_BELOW) - SLACK ? 'well below' : 'fine'
}

/**
 * Allowances as the figures have them: what is counted lower is lowered, what had no allowance is given one. With a reason,
 * what is above is raised, and the reason stands beside it from then on.
 * @param {Figures} figures
 * @param {Allowances} allowances
 * @param {string} [raiseFor]
 * @returns {Allowances}
 */
export function rewritten(figures, allowances, raiseFor) {
  /** @type {Allowances} */
  const result = {}
  for (const { store, unit, what, measured, says } of judge(figures, allowances)) {
    if (measured === undefined) continue
    const known = allowances[store]?.[unit]?.[what]
    const units = result[store] ?? {}
    units[unit] = { ...units[unit], [what]: allowanceFor({ measured, says, known, raiseFor }) }
    result[store] = units
  }
  return result
}

/** @param {{ measured: number, says: Verdict['says'], known: Allowance | undefined, raiseFor: string | undefined }} of @returns {Allowance} */
function allowanceFor({ measured, says, known, raiseFor }) {
  if (known === undefined) return { allowed: measured, reason: raiseFor ?? 'As first counted.' }
  if (says === 'above' && raiseFor !== undefined) return { allowed: measured, reason: raiseFor }
  return { ...known, allowed: Math.min(known.allowed, measured) }
}

/** In the order of the figures; what is only allowed comes last. @param {Figures} figures @param {Allowances} allowances */
function keysOf(figures, allowances) {
  /** @type {Map<string, [string, string, string]>} */
  const keys = new Map()
  for (const tree of [figures, allowances])
    for (const [store, units] of Object.entries(tree))
      for (const [unit, counts] of Object.entries(units))
        for (const what of Object.keys(counts)) keys.set(`${store} ${unit} ${what}`, [store, unit, what])
  return [...keys.values()]
}
