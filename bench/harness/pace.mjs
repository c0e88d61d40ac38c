/** How long is measured, and on how much: a full run, or a quick one that shows that everything works. */

/**
 * @typedef {object} Pace
 * @property {boolean} quick
 * @property {number} rounds What a figure is the median of.
 * @property {number} sampleMs How long one sample goes on, in whole runs.
 * @property {number} leastWarmMs Warming goes on so long at least, and then until two samples in a row agree,
 * @property {number} mostWarmMs but no longer than this.
 * @property {number} agreement By how much two samples may differ to agree, as a part of the later one.
 * @property {(full: number, quick: number) => number} of The size of something.
 */

/** @param {{ quick: boolean, rounds?: number | undefined }} options @returns {Pace} */
export function paceOf({ quick, rounds }) {
  const agreement = 0.05
  return quick
    ? { quick, rounds: rounds ?? 1, sampleMs: 1, leastWarmMs: 0, mostWarmMs: 1, agreement, of: (_, small) => small }
    : {
        quick,
        rounds: rounds ?? 5,
        sampleMs: 400,
        leastWarmMs: 2_000,
        mostWarmMs: 8_000,
        agreement,
        of: (full) => full,
      }
}
