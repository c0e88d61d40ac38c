/** Several measurements as one. */

/** @param {readonly number[]} values at least one */
export function spread(values) {
  const sorted = values.toSorted((a, b) => a - b)
  return { median: sorted[sorted.length >> 1] ?? 0, min: sorted[0] ?? 0, max: sorted.at(-1) ?? 0 }
}
