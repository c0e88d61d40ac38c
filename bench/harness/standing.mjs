/** Measured contenders as rows: each figure with its smallest and largest, and how it stands to Pawl in the same run. */

/** The columns of a comparison, `unit` over its figure. @param {string} unit @param {string} [than] */
export const columnsOf = (unit, than = 'of Pawl’s') => ({
  name: '',
  median: unit,
  min: 'min',
  max: 'max',
  ratio: than,
  keeps: 'on disk',
  warm: 'runs to warm',
})

/**
 * @param {readonly import('./compare.mjs').Measured[]} measured
 * @param {{ key: string, pawl: string }} of The figure, and whose it is measured by.
 * @returns {import('./table.mjs').Row[]}
 */
export function standing(measured, { key, pawl }) {
  const own = measured.find(({ title }) => title === pawl)?.figures[key]?.median ?? Number.NaN
  return measured.map(({ title, keeps, figures, warmRuns, settled }) => {
    const { median = Number.NaN, min = Number.NaN, max = Number.NaN } = figures[key] ?? {}
    const warm = settled ? `${warmRuns}` : `${warmRuns}, still changing`
    return { name: title, median, min, max, ratio: ratioOf(median / own), keeps, warm }
  })
}

/** @param {number} ratio */
export const ratioOf = (ratio) => Number(ratio.toPrecision(3))
