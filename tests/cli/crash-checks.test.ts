/** What the crash campaign counts as wrong: each is found in evidence that was made to show it. */
import { expect, test } from 'vitest'

interface Body {
  readonly session: string
  readonly tool: string
  readonly callId: string
  readonly run: number
  readonly key: string
  readonly what: 'began' | 'effect' | 'done' | 'probed'
  readonly answer?: 'done' | 'not-done'
}
interface Evidence {
  readonly events: readonly unknown[]
  readonly witness: readonly Body[]
  readonly commands: readonly { token: string; what: 'began' | 'done' }[]
  readonly acknowledged: readonly { id: string; seq?: number }[]
  readonly seen: readonly (readonly [number, string])[]
}
interface Checks {
  findingsOf(evidence: Evidence): readonly { defect: string; text: string }[]
  digestOf(json: string): string
}

const { findingsOf, digestOf }: Checks = await import(new URL('../../scripts/crash/checks.mjs', import.meta.url).href)

/** A log of these events, numbered; only what the checks read stands in them. */
const log = (...events: readonly { type: string; data: unknown }[]) => events.map((event, seq) => ({ ...event, seq }))
const dispatch = (run: number) => ({ type: 'tool/dispatch', data: { callId: 'c', run } })
const said = (id: string) => ({
  type: 'agent/inbox/spliced',
  data: { inserted: [{ kind: 'message', message: { id } }] },
})
const entered = (id: string) => ({ type: 'user/message', data: { id } })

const body = (tool: string, run: number, what: Body['what'], more: Partial<Body> = {}): Body => ({
  session: 's',
  tool: `effect_${tool}`,
  callId: 'c',
  run,
  key: 'k',
  what,
  ...more,
})
const defects = (evidence: Partial<Evidence>) =>
  findingsOf({ events: [], witness: [], commands: [], acknowledged: [], seen: [], ...evidence }).map(
    ({ defect }) => defect,
  )

const TWO_RUNS = log(dispatch(1), dispatch(2))

test('a body that begins twice in one run is doubled, whatever its tool allows', () => {
  const witness = [body('rerun', 1, 'began'), body('rerun', 1, 'began')]
  expect(defects({ events: log(dispatch(1)), witness })).toEqual(['doubled'])
})

test('a second run needs leave: rerun has it, unknown never', () => {
  const runs = (tool: string) => [body(tool, 1, 'began'), body(tool, 2, 'began')]
  expect(defects({ events: TWO_RUNS, witness: runs('rerun') })).toEqual([])
  expect(defects({ events: TWO_RUNS, witness: runs('unknown') })).toEqual(['doubled'])
  expect(defects({ events: TWO_RUNS, witness: runs('ask') })).toEqual(['doubled'])
  expect(defects({ events: TWO_RUNS, witness: runs('probe') })).toEqual(['doubled'])
})

test.each([
  ['approved', []],
  ['denied', ['doubled']],
])('a rerun that was %s', (decision, found) => {
  const requested = { type: 'tool/approval-requested', data: { callId: 'c', run: 1, purpose: 'rerun' } }
  const resolved = { type: 'tool/approval-resolved', data: { callId: 'c', run: 1, decision } }
  const events = log(dispatch(1), requested, resolved, dispatch(2))
  expect(defects({ events, witness: [body('ask', 1, 'began'), body('ask', 2, 'began')] })).toEqual(found)
})

test('a probe that found nothing done allows a second run, and its effect is done once all the same', () => {
  const probed = body('probe', 1, 'probed', { answer: 'not-done' })
  const again = [body('probe', 1, 'began'), probed, body('probe', 2, 'began'), body('probe', 2, 'effect')]
  expect(defects({ events: TWO_RUNS, witness: again })).toEqual([])
  expect(defects({ events: TWO_RUNS, witness: [body('probe', 1, 'effect'), ...again] })).toEqual(['doubled'])
})

test('the idempotency key of a call never changes', () => {
  const witness = [body('rerun', 1, 'began'), body('rerun', 2, 'began', { key: 'another' })]
  expect(defects({ events: TWO_RUNS, witness })).toEqual(['doubled'])
})

test('a body that began before its dispatch was on the disk is known to no log', () => {
  expect(defects({ witness: [body('rerun', 1, 'began')] })).toEqual(['undispatched'])
  expect(defects({ commands: [{ token: 't', what: 'began' }] })).toEqual(['undispatched'])
})

test('a shell command that began twice is doubled', () => {
  const call = { type: 'tool/call', data: { callId: 'c', arguments: '{"command":"echo t"}' } }
  const began = { token: 't', what: 'began' } as const
  expect(defects({ events: log(call, dispatch(1)), commands: [began] })).toEqual([])
  expect(defects({ events: log(call, dispatch(1)), commands: [began, began] })).toEqual(['doubled'])
})

test('an acknowledged message is lost if it is not in the log, stands elsewhere, or never entered', () => {
  const events = log(said('m'), entered('m'))
  expect(defects({ events, acknowledged: [{ id: 'm', seq: 0 }, { id: 'm' }] })).toEqual([])
  expect(defects({ events, acknowledged: [{ id: 'm', seq: 1 }] })).toEqual(['lost'])
  expect(defects({ events, acknowledged: [{ id: 'other' }] })).toEqual(['lost'])
  expect(defects({ events: log(said('m')), acknowledged: [{ id: 'm' }] })).toEqual(['lost'])
})

test('a message enters once, also one that nobody was told of', () => {
  expect(defects({ events: log(said('m'), entered('m'), entered('m')) })).toEqual(['twice'])
})

test('an event that was seen stays, byte for byte', () => {
  const events = log(entered('m'))
  expect(defects({ events, seen: [[0, digestOf(JSON.stringify(events[0]))]] })).toEqual([])
  expect(defects({ events, seen: [[0, digestOf('{}')]] })).toEqual(['gone'])
  expect(defects({ events, seen: [[1, digestOf('{}')]] })).toEqual(['gone'])
})
