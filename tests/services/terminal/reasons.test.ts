import { expect, test } from 'vitest'
import type { TurnEndReason } from '../../../src/log/events.ts'
import { exitCodeOf, reasonLine } from '../../../src/services/terminal/reasons.ts'

const limit = { name: 'tokens', scope: 'turn', max: 100, spent: 120 } as const

const CASES: readonly [TurnEndReason, number, string][] = [
  [{ kind: 'completed' }, 0, 'completed'],
  [{ kind: 'error', error: { code: 'AUTH', message: 'no\nkey' } }, 2, 'error AUTH: no key'],
  [{ kind: 'interrupted' }, 2, 'interrupted'],
  [{ kind: 'interrupted', cause: 'recovery-limit' }, 2, 'interrupted: it crashed too often to be carried on'],
  [{ kind: 'blocked', reason: 'not today' }, 3, 'blocked: not today'],
  [{ kind: 'max-steps', maxSteps: 3 }, 4, 'max-steps: 3 were taken'],
  [{ kind: 'max-tokens' }, 4, 'max-tokens'],
  [{ kind: 'limit', limit }, 4, 'limit: 120 of 100 tokens (turn)'],
  [{ kind: 'repeated-call', name: 'x', count: 6 }, 4, 'repeated-call: x was asked for 6 times alike'],
  [{ kind: 'stopped-by-policy', policy: 'p', reason: 'r' }, 4, 'stopped-by-policy p: r'],
  [{ kind: 'aborted', cause: { kind: 'user' } }, 130, 'cancelled by the user'],
  [{ kind: 'aborted', cause: { kind: 'limit', limit } }, 130, 'cancelled by a limit: 120 of 100 tokens (turn)'],
]

test.each(CASES)('%j exits %d and reads "%s"', (reason, code, line) => {
  expect(exitCodeOf(reason)).toBe(code)
  expect(reasonLine(reason)).toBe(line)
})
