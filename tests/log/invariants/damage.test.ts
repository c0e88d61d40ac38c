/** Every small damage to a good log is noticed, but for changes that make another log an agent could have written. */
import { expect, test } from 'vitest'
import type { SessionEvent } from '../../../src/log/events.ts'
import { createInvariantChecker } from '../../../src/log/invariants.ts'
import { verify } from '../../../src/machines/verify.ts'
import { damages } from '../../kit/damage.ts'
import { livedLogs } from '../../kit/lived-logs.ts'
import { LEGAL } from './legal-changes.ts'

/** Each kind of damage so often in each log; wherever it can be done with PAWL_THOROUGH=1. */
const { PAWL_THOROUGH } = process.env
const TIMES = PAWL_THOROUGH === undefined ? 1 : Number.POSITIVE_INFINITY

const legal = new Set(Object.values(LEGAL).flat())

function isNoticed(log: readonly SessionEvent[]): boolean {
  const checker = createInvariantChecker()
  return log.some((event) => checker.check(event).length > 0) || checker.end().length > 0
}

test('every damage to a good log is noticed', { timeout: 600_000 }, async () => {
  const unnoticed = new Map<string, string>()
  const wronglyLegal = new Map<string, string>()
  const count = { logs: 0, damages: 0, noticed: 0 }
  for await (const [name, log] of livedLogs()) {
    expect(verify(log), name).toMatchObject({ ok: true })
    count.logs++
    const seen = new Map<string, number>()
    for (const { kind, seq, log: damaged } of damages(log)) {
      const before = seen.get(kind) ?? 0
      seen.set(kind, before + 1)
      if (before >= TIMES) continue
      count.damages++
      if (isNoticed(damaged)) count.noticed++
      else {
        unnoticed.set(kind, `${name}, seq ${seq}`)
        // What is called legal the chart must take as well.
        if (!verify(damaged).ok) wronglyLegal.set(kind, `${name}, seq ${seq}`)
      }
    }
  }
  console.log(`${count.damages} damages to ${count.logs} logs, ${count.noticed} noticed, the others legal`)
  expect(Object.fromEntries([...unnoticed].filter(([kind]) => !legal.has(kind)))).toEqual({})
  expect(Object.fromEntries(wronglyLegal)).toEqual({})
  if (PAWL_THOROUGH !== undefined) expect([...legal].filter((kind) => !unnoticed.has(kind))).toEqual([])
})
