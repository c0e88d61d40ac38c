/** What a JSON report of vitest counts, as one line: `N passed, N failed, N skipped`. */
import { readFileSync } from 'node:fs'

/** @typedef {{ passed: number, failed: number, skipped: number }} Counts */

/**
 * A file that could not run counts as one failure, and so does a report that is not there.
 * @param {string} path
 * @returns {Counts}
 */
export function countsOf(path) {
  /** @type {{ testResults: { status: string, assertionResults: { status: string }[] }[] }} */
  let report
  try {
    report = JSON.parse(readFileSync(path, 'utf8'))
  } catch {
    // The tests did not come to their end.
    return { passed: 0, failed: 1, skipped: 0 }
  }
  const results = report.testResults.flatMap(({ status, assertionResults }) => {
    const tests = assertionResults.map((test) => test.status)
    return status === 'failed' && !tests.includes('failed') ? [...tests, 'failed'] : tests
  })
  const count = (/** @type {string[]} */ ...states) => results.filter((state) => states.includes(state)).length
  return {
    passed: count('passed'),
    failed: count('failed'),
    skipped: count('skipped', 'pending', 'todo', 'disabled'),
  }
}

/** @param {Counts} counts */
export const summary = ({ passed, failed, skipped }) => `${passed} passed, ${failed} failed, ${skipped} skipped`
