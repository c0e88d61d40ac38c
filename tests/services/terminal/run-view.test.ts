import pc from 'picocolors'
import { expect, test } from 'vitest'
import type { NewEvent, SessionEvent } from '../../../src/log/events.ts'
import { runView } from '../../../src/services/terminal/run-view.ts'
import { placed, turnWithATool } from './given.ts'

const plain = pc.createColors(false)

function shown(events: readonly SessionEvent[], options: { reasoning?: boolean } = {}): { out: string; err: string } {
  const view = runView({ palette: plain, ...options })
  const pieces = [...events.flatMap((event) => view.show(event)), ...view.end()]
  const text = (to: string) => pieces.flatMap((piece) => (piece.to === to ? [piece.text] : [])).join('')
  return { out: text('out'), err: text('err') }
}

const delta = (text: string, type: 'text-delta' | 'reasoning-delta' = 'text-delta'): NewEvent => ({
  type: 'assistant/chunk',
  data: { turn: 1, step: 1, attempt: 1, chunk: { type, index: 0, text } },
})

test('the answer streams to stdout as it was said, and each call gets its two lines there', () => {
  expect(shown(turnWithATool())).toEqual({
    out: 'Let me look.\n→ read_file path=README.md\n✓ read_file path=README.md (12 ms)\n',
    err: '',
  })
})

test('a failed call shows its code and what it said', () => {
  const { out } = shown(turnWithATool({ code: 'INVALID_ARGS', text: 'path is missing\nsee the schema' }))
  expect(out).toContain('✗ read_file path=README.md (12 ms) INVALID_ARGS: path is missing see the schema\n')
})

test('a call answered without having run says so instead of a time', () => {
  const events = turnWithATool({ code: 'ABORTED_BEFORE_DISPATCH', text: 'cancelled' })
  const { out } = shown(events.filter(({ type }) => type !== 'tool/dispatch'))
  expect(out).toContain('✗ read_file path=README.md (not run) ABORTED_BEFORE_DISPATCH: cancelled\n')
})

test('a run after the first is told apart', () => {
  const again: NewEvent = { type: 'tool/dispatch', data: { turn: 1, step: 1, callId: 'c1', run: 2, onCrash: 'rerun' } }
  expect(shown(placed(again)).out).toBe('→ c1 (run 2)\n')
})

test('a call made before this run has its name, of the last turn only', () => {
  const view = runView({ palette: plain })
  const [start, ...rest] = turnWithATool()
  for (const event of rest.slice(0, 6)) view.recall(event)
  expect(view.show(rest[6]!)).toEqual([{ to: 'out', text: '→ read_file path=README.md\n' }])
  view.recall(start!)
  expect(view.show(rest[6]!)).toEqual([{ to: 'out', text: '→ c1\n' }])
})

test('text reaches the screen delta by delta, and a line left open is ended once', () => {
  const view = runView({ palette: plain })
  const [first, second] = placed(delta('Hel'), delta('lo'))
  expect(view.show(first!)).toEqual([{ to: 'out', text: 'Hel' }])
  expect(view.show(second!)).toEqual([{ to: 'out', text: 'lo' }])
  expect(view.end()).toEqual([{ to: 'out', text: '\n' }])
  expect(view.end()).toEqual([])
})

test('a model cannot drive the terminal', () => {
  expect(shown(placed(delta('a\u001b[2Jb'))).out).toBe('ab\n')
})

test('thinking is shown only when asked for', () => {
  const events = placed(delta('hm', 'reasoning-delta'))
  expect(shown(events).out).toBe('')
  expect(shown(events, { reasoning: true }).out).toBe('hm\n')
})

test('a retry is news for stderr and does not cut into a line of the answer', () => {
  const retry: NewEvent = {
    type: 'llm/retry',
    data: {
      turn: 1,
      step: 1,
      attempt: 1,
      retryId: 'r',
      provider: 'p',
      policyKey: 'k',
      retry: 1,
      delayMs: 500,
      mode: 'normal',
      maxRetries: 2,
      failure: { code: 'RATE_LIMIT', message: 'slow\ndown' },
    },
  }
  expect(shown(placed(delta('Hel'), retry))).toEqual({
    out: 'Hel\n',
    err: 'asking again in 500 ms: RATE_LIMIT: slow down\n',
  })
})
