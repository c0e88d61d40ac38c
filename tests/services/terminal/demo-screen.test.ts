import pc from 'picocolors'
import { expect, test } from 'vitest'
import type { NewEvent, SessionEvent } from '../../../src/log/events.ts'
import { type DemoFacts, demoScreen } from '../../../src/services/terminal/demo-screen.ts'
import { answered, placed, result } from './given.ts'

const plain = pc.createColors(false)
const at = { turn: 1, step: 2 }

const call = (callId: string): NewEvent => ({
  type: 'tool/call',
  data: { ...at, callId, name: 'search_text', arguments: `{"query":"${callId}"}` },
})
const dispatch = (callId: string, run = 1): NewEvent => ({
  type: 'tool/dispatch',
  data: { ...at, callId, run, onCrash: 'rerun' },
})
const settled = (callId: string): NewEvent => ({
  type: 'tool/result',
  data: { ...at, message: result(callId, 'found') },
})
const says = (text: string): NewEvent => ({
  type: 'assistant/message',
  data: { ...at, attempt: 1, message: answered(text), finish: { kind: 'stop' }, calls: [] },
})
const resumed: NewEvent = {
  type: 'session/resumed',
  data: { recovery: 'continue', resumes: 1, version: '0.1.0', chart: 'x' },
}

const killedAtC2 = placed(
  call('c1'),
  call('c2'),
  dispatch('c1'),
  dispatch('c2'),
  settled('c1'),
  resumed,
  dispatch('c2', 2),
  settled('c2'),
  call('c3'),
  dispatch('c3'),
  settled('c3'),
  says('(demo model: rules)\n\nfound it\nREADME.md:1  # x'),
)

const facts = (over: Partial<DemoFacts> = {}): DemoFacts => ({
  question: 'what?',
  folder: '/somewhere',
  model: 'demo',
  events: killedAtC2,
  killed: { events: 5, callId: 'c2', pid: 11, ms: 400 },
  resumed: { pid: 12, ms: 300 },
  begun: [
    { callId: 'c1', run: 1 },
    { callId: 'c2', run: 1 },
    { callId: 'c2', run: 2 },
    { callId: 'c3', run: 1 },
  ],
  verdict: 'ok: 12 events, 1 turn, idle',
  commands: ['pawl log demo'],
  store: '/tmp/pawl.db',
  ...over,
})

const screen = (over: Partial<DemoFacts> = {}): string => demoScreen(facts(over), plain).join('\n')

test('it shows what was on disk at the kill and what carried on', () => {
  expect(screen()).toContain('SIGKILL to process 11 after 400 ms, while search_text was at work. On disk: 5 events')
  expect(screen()).toContain('Opened by process 12: 7 more events in 300 ms')
  expect(screen()).toMatch(/\n {4}5 {2}\S+ {2}session\/resumed/)
})

test('it says of each call how often its body began, and why twice', () => {
  const lines = screen().split('\n')
  const ran = (callId: string) => lines.find((line) => line.includes(`query=${callId}`) && line.includes('ran'))
  expect(ran('c1')).toMatch(/ran 1× {2}finished before the kill, not run again$/)
  expect(ran('c2')).toMatch(/ran 2× {2}killed in run 1, again as run 2: onCrash: rerun$/)
  expect(ran('c3')).toMatch(/ran 1× {2}after the kill$/)
})

test('a body that the witness saw twice is never called once', () => {
  expect(screen()).toContain('as it began: no run began twice, nothing finished ran again\n')
  for (const run of [1, 2]) {
    const begun = [...facts().begun, { callId: 'c1', run }]
    expect(screen({ begun })).toMatch(/query=c1 +ran 2×/)
    expect(screen({ begun })).toContain('as it began: SOMETHING RAN TWICE\n')
  }
})

test('the answer, the verdict and the next commands end it', () => {
  expect(screen()).toContain('The answer:\n  found it\n  README.md:1  # x\n\nverify ok')
  expect(
    screen().endsWith('verify ok: 12 events, 1 turn, idle\nThe log is in /tmp/pawl.db. Next:\n  pawl log demo'),
  ).toBe(true)
})

test('where nothing could be killed it says so', () => {
  const { killed: _, resumed: __, ...rest } = facts()
  expect(demoScreen(rest, plain).join('\n')).toContain('before a tool could be killed')
})

test('it fits on one screen of 40 lines and 100 columns, whatever comes', () => {
  const ids = Array.from({ length: 30 }, (_, i) => `c${i}-${'long'.repeat(40)}`)
  const events: readonly SessionEvent[] = placed(
    ...ids.map(call),
    ...ids.map((id) => dispatch(id)),
    says('line\n'.repeat(200)),
  )
  const lines = demoScreen(
    facts({
      events,
      question: 'q'.repeat(300),
      folder: '/f'.repeat(100),
      killed: { events: 40, callId: ids[0] ?? '', pid: 123456, ms: 12_345 },
      commands: ['one', 'two'],
    }),
    plain,
  )
  expect(lines.length).toBeLessThanOrEqual(40)
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(100)
})
