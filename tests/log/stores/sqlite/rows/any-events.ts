/** Events for the tests of rows: those of a usual turn, and every odd thing that a store may be handed beside them. */
import fc from 'fast-check'
import type { SessionEvent } from '../../../../../src/log/events.ts'

/** An event without its place. */
export interface Bare {
  readonly type: string
  readonly data: unknown
  readonly [mark: string]: unknown
}

const UUID = '0ce71595-15cb-4896-86df-76d526fb6465'
const DIGEST = `sha256:${'0a'.repeat(32)}`
const at = { turn: 2, step: 3 }
const inAttempt = { ...at, attempt: 1 }
const text = { type: 'text', text: 'hello hello' }
const thought = { type: 'reasoning', text: 'hm, hello hello' }
const call = { type: 'tool-call', id: 'call-0001', name: 'look', arguments: '{"n":12345}' }
const message = { id: UUID, role: 'user', content: [text], source: { kind: 'user' } }
const source = { kind: 'model', provider: 'provider', model: 'model' }
const replayState = { response: { id: 'resp-1', signature: 'c2lnbmF0dXJl' }, blocks: [null] }
const usage = { inputTokens: 1, outputTokens: 2 }
const marks = { surfaceOp: 'append', sourceEventSeqs: [0, 1, 2] }
const planned = { callId: 'call-0001', name: 'look', mode: 'parallel' }

const splice = (more: object): Bare => ({
  type: 'agent/inbox/spliced',
  data: { mutation: 'splice', queue: 'next-turn', start: 0, deleteCount: 0, ...more },
})
const chunk = (said: object, more: object = {}): Bare => ({
  type: 'assistant/chunk',
  data: { ...inAttempt, chunk: said, ...more },
})
const answer = (content: readonly object[], from: object, more: object = {}): Bare => ({
  type: 'assistant/message',
  data: {
    ...inAttempt,
    message: { id: UUID, role: 'assistant', content, source: from },
    finish: { kind: 'tool-calls' },
    calls: [planned],
    ...more,
  },
  ...marks,
})
const result = (block: object, more: object = {}): Bare => ({
  type: 'tool/result',
  data: {
    ...at,
    message: {
      id: 'result-call-0001',
      role: 'user',
      source: { kind: 'tool', callId: 'call-0001' },
      content: [{ type: 'tool-result', toolCallId: 'call-0001', content: [text], ...block }],
    },
    ...more,
  },
  ...marks,
})

/** Of each type that a turn usually has; all of them have a form. */
export const USUAL: readonly Bare[] = [
  splice({ inserted: [{ kind: 'message', message }], wake: true }),
  splice({ inserted: [{ kind: 'message', message: { ...message, source: { kind: 'plugin', plugin: 'p' } } }] }),
  splice({ inserted: [{ kind: 'tool-result', turn: 2, callId: 'call-0001' }] }),
  splice({
    inserted: [
      { kind: 'tool-result', turn: 2, callId: 'call-0001' },
      { kind: 'tool-result', turn: 2, callId: 'call-0002' },
    ],
  }),
  splice({ inserted: [], outcome: 'claimed' }),
  { type: 'turn/start', data: { turn: 2, limits: { maxSteps: 5, maxParallelToolCalls: 3 } } },
  { type: 'step/start', data: at },
  { type: 'user/message', data: message, surfaceOp: 'append' },
  chunk({ type: 'block-start', index: 0, blockType: 'text' }, { request: DIGEST }),
  chunk({ type: 'text-delta', index: 0, text: 'hello ' }),
  chunk({ type: 'text-delta', index: 0, text: '' }),
  chunk({ type: 'text-delta', index: 0, text: 'hello' }),
  chunk({ type: 'block-end', index: 0, block: text }),
  chunk({ type: 'block-start', index: 1, blockType: 'reasoning' }),
  chunk({ type: 'reasoning-delta', index: 1, text: 'hm, hello hello' }),
  chunk({ type: 'block-end', index: 1, block: thought }),
  chunk({ type: 'tool-call-delta', index: 2, id: 'call-0001', name: 'look', argumentsDelta: '{"n":' }),
  chunk({ type: 'tool-call-delta', index: 2, argumentsDelta: '123' }),
  chunk({ type: 'tool-call-delta', index: 2, argumentsDelta: '45}' }),
  chunk({ type: 'block-end', index: 2, block: call }),
  chunk({ type: 'usage', usage }),
  chunk({ type: 'usage', usage: { ...usage, cacheReadTokens: 0, reasoningTokens: 9 } }),
  chunk({ type: 'finish', reason: { kind: 'tool-calls' } }),
  chunk({ type: 'finish', reason: { kind: 'stop' }, replayState }),
  answer([text, call], source),
  answer([text, thought, call], source, { usage: { ...usage, cacheReadTokens: 3, cacheWriteTokens: 4 } }),
  answer([], { ...source, replayState }, { usage }),
  { type: 'tool/call', data: { ...at, callId: 'call-0001', name: 'look', arguments: '{"n":12345}' } },
  {
    type: 'tool/approval-requested',
    data: { ...at, callId: 'call-0001', run: 0, name: 'look', argumentsDigest: DIGEST, purpose: 'run' },
  },
  { type: 'tool/approval-resolved', data: { ...at, callId: 'call-0001', run: 0, decision: 'approved' } },
  { type: 'tool/approval-resolved', data: { ...at, callId: 'call-0001', run: 0, decision: 'denied', by: 'me' } },
  { type: 'tool/dispatch', data: { ...at, callId: 'call-0001', run: 1, onCrash: 'unknown' } },
  result({}),
  result({}, { meta: { lines: [1, 2, { __proto__: null }], path: 'a/long/path' } }),
  result({ isError: true }, { error: { name: 'Error', code: 'CODE' } }),
  { type: 'step/end', data: { ...at, outcome: { kind: 'tool-calls' } } },
  { type: 'turn/end', data: { turn: 2, reason: { kind: 'completed' } } },
]

/** Values that encodings like to change. */
const ODD_VALUES: readonly unknown[] = [
  JSON.parse('{"__proto__":{"__proto__":1},"constructor":2,"":3,"10":4,"9":5}'),
  '\ud83d',
  '\udc00 after',
  '',
  '\u0000\u2028"\\',
  'A'.repeat(43),
  DIGEST.toUpperCase(),
  DIGEST.replace('0a', '0A'),
  UUID.toUpperCase(),
  UUID.replace('-', ''),
  `${UUID}\n`,
  [1],
  ['AAAAAAAAAAAAAAAAAAAAAA'],
  3,
  1e21,
  2 ** 53,
  2 ** 53 + 2,
  -1,
  1.5,
  5e-324,
  null,
  true,
  [],
  {},
]

const usual = fc.constantFrom(...USUAL)
const value = fc.oneof(fc.constantFrom(...ODD_VALUES), fc.jsonValue())

/** A copy of `event` with its `place`th field or item, however deep, changed; undefined if it has fewer. */
function changedAt(event: Bare, place: number, change: (old: unknown) => unknown): Bare | undefined {
  const copy: Bare = JSON.parse(JSON.stringify(event))
  const places: [object, string][] = []
  const walk = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return
    for (const key of Object.keys(node)) {
      places.push([node, key])
      walk(Reflect.get(node, key))
    }
  }
  walk(copy)
  const found = places[place]
  if (found === undefined) return undefined
  const [parent, key] = found
  Reflect.set(parent, key, change(Reflect.get(parent, key)))
  return copy
}

const isRecord = (old: unknown): old is object => typeof old === 'object' && old !== null && !Array.isArray(old)
const reversed = (old: unknown): unknown =>
  isRecord(old) ? Object.fromEntries(Object.entries(old).reverse()) : Array.isArray(old) ? [...old, ...old] : old
const further = (old: unknown): unknown =>
  isRecord(old) ? { ...old, later: { version: [2] } } : Array.isArray(old) ? old.slice(1) : old

const shorter = (old: unknown): unknown => (isRecord(old) ? Object.fromEntries(Object.entries(old).slice(0, -1)) : old)

const CHANGES: readonly ((old: unknown) => unknown)[] = [
  reversed,
  further,
  shorter,
  ...ODD_VALUES.map((odd) => () => odd),
]

/** Every usual event with each of its fields changed in every way, in stretches of some hundred. */
export const EVERY_ODD_EVENT: readonly (readonly SessionEvent[])[] = USUAL.map((event) => {
  const odd: Bare[] = [event, reversed(event) as Bare]
  for (const change of CHANGES) {
    for (let place = 0; ; place++) {
      const changed = changedAt(event, place, change)
      if (changed === undefined) break
      if (typeof changed.type === 'string') odd.push(changed)
    }
  }
  return placedAt(
    7,
    odd.map((one) => [one, 1]),
  )
})

const seqs = fc.oneof(fc.array(fc.nat(30)), fc.constantFrom([0.5, 1.5], [-1, 0], ['a'], [2, 1], [5, 6], 'no list', {}))

/** A usual event, or one that is odd in one way. */
const bare: fc.Arbitrary<Bare> = fc.oneof(
  { arbitrary: usual, weight: 6 },
  fc.tuple(usual, fc.nat(25), value).map(([event, place, odd]) => changedAt(event, place, () => odd) ?? event),
  fc.tuple(usual, fc.nat(25)).map(([event, place]) => changedAt(event, place, reversed) ?? event),
  fc.tuple(usual, fc.nat(25)).map(([event, place]) => changedAt(event, place, further) ?? event),
  usual.map((event) => reversed(event) as Bare),
  usual.map((event) => ({ ...event, ignorable: true })),
  fc.tuple(usual, seqs).map(([event, sourceEventSeqs]) => ({ ...event, sourceEventSeqs })),
  fc.tuple(usual, value).map(([event, surfaceOp]) => ({ ...event, surfaceOp })),
  usual.map((event) => ({ ...event, surfaceOp: { op: 'replace', start: 1, end: 2 } })),
  value.map((data) => ({ type: 'acme/note', data, ignorable: true })),
  value.map((data) => ({ type: 'later/type', data })),
  fc
    .tuple(fc.string({ unit: 'binary' }), fc.nat(2), fc.constantFrom('text-delta', 'reasoning-delta'))
    .map(([said, index, type]) => chunk({ type, index, text: said })),
  fc.tuple(fc.nat(3), fc.nat(3)).map(([turn, step]) => ({ type: 'step/start', data: { turn, step } })),
  fc
    .tuple(fc.nat(3), fc.string())
    .map(([attempt, said]) => chunk({ type: 'text-delta', index: 0, text: said }, { attempt })),
)

/** Mostly small steps; now and then a jump, also back, and what is no time at all. */
const later = fc.oneof(
  { arbitrary: fc.nat(40), weight: 12 },
  fc.constantFrom<unknown>(86_400_000, -1, -1_000, 2 ** 53, 0.25, -3_000_000_000_000, null, 'noon'),
)

/** Events in a row from any seq on. */
export const anyEvents: fc.Arbitrary<SessionEvent[]> = fc
  .tuple(fc.nat(1_000), fc.array(fc.tuple(bare, later), { minLength: 1, maxLength: 50 }))
  .map(([first, list]) => placedAt(first, list))

/** Usual turns, one after the other. */
export const usualEvents = (first: number, turns: number): SessionEvent[] =>
  placedAt(first, Array.from({ length: turns }, () => USUAL.map((event): [Bare, number] => [event, 3])).flat())

function placedAt(first: number, list: readonly (readonly [Bare, unknown])[]): SessionEvent[] {
  let time = 1_700_000_000_000
  return list.map(([{ type, ...rest }, ms], i) => {
    if (typeof ms === 'number') time += ms
    return { type, seq: first + i, time: typeof ms === 'number' ? time : ms, ...rest } as unknown as SessionEvent
  })
}
