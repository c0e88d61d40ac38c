/** Rows in forms: what is unpacked is what was packed, to the letter, whatever it was. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { SessionEvent } from '../../../../src/log/events.ts'
import { FormedRow, unformed } from '../../../../src/log/stores/sqlite/codec.ts'

const at = { turn: 2, step: 3 }
const inAttempt = { ...at, attempt: 1 }
const uuid = '0ce71595-15cb-4896-86df-76d526fb6465'
const text = { type: 'text', text: 'hello hello' }
const call = { type: 'tool-call', id: 'call-0001', name: 'look', arguments: '{"n":12345}' }
const message = { id: uuid, role: 'user', content: [text], source: { kind: 'user' } }
const splice = (more: object) => ({ type: 'agent/inbox/spliced', data: { mutation: 'splice', queue: 'next-turn', start: 0, deleteCount: 0, ...more } })
const chunk = (said: object, more: object = {}) => ({ type: 'assistant/chunk', data: { ...inAttempt, chunk: said, ...more } })
const usage = { inputTokens: 1, outputTokens: 2 }
const answer = { id: uuid, role: 'assistant', content: [text, call], source: { kind: 'model', provider: 'p', model: 'm' } }
const marks = { surfaceOp: 'append', sourceEventSeqs: [3, 4, 5] }
const result = (block: object) => ({ id: 'result-call-0001', role: 'user', source: { kind: 'tool', callId: 'call-0001' }, content: [{ type: 'tool-result', toolCallId: 'call-0001', content: [text], ...block }] })

const USUAL: readonly object[] = [
  splice({ inserted: [{ kind: 'message', message }], wake: true }),
  { type: 'turn/start', data: { turn: 2, limits: { maxSteps: 5, maxParallelToolCalls: 3 } } },
  splice({ inserted: [], outcome: 'claimed' }),
  { type: 'step/start', data: at },
  { type: 'user/message', data: message, surfaceOp: 'append' },
  chunk({ type: 'block-start', index: 0, blockType: 'text' }, { request: `sha256:${'0a'.repeat(32)}` }),
  chunk({ type: 'text-delta', index: 0, text: 'hello ' }),
  chunk({ type: 'text-delta', index: 0, text: 'hello' }),
  chunk({ type: 'reasoning-delta', index: 0, text: 'hm' }),
  chunk({ type: 'block-end', index: 0, block: text }),
  chunk({ type: 'tool-call-delta', index: 1, id: 'call-0001', name: 'look', argumentsDelta: '{"n":' }),
  chunk({ type: 'tool-call-delta', index: 1, argumentsDelta: '12345}' }),
  chunk({ type: 'block-end', index: 1, block: call }),
  chunk({ type: 'usage', usage }),
  chunk({ type: 'finish', reason: { kind: 'tool-calls' } }),
  { type: 'assistant/message', data: { ...inAttempt, message: answer, finish: { kind: 'stop' }, calls: [{ callId: 'call-0001', name: 'look', mode: 'parallel' }], usage }, ...marks },
  { type: 'tool/call', data: { ...at, callId: 'call-0001', name: 'look', arguments: '{"n":12345}' } },
  { type: 'tool/dispatch', data: { ...at, callId: 'call-0001', run: 1, onCrash: 'unknown' } },
  { type: 'tool/result', data: { ...at, message: result({}) }, ...marks },
  { type: 'tool/result', data: { ...at, message: result({ isError: true }), error: { name: 'E', code: 'C' } }, ...marks },
  { type: 'step/end', data: { ...at, outcome: { kind: 'tool-calls' } } },
  { type: 'turn/end', data: { turn: 2, reason: { kind: 'completed' } } },
]

/** The event as it is, or with something about it that no form has. */
const odd = fc.oneof(
  fc.constantFrom(...USUAL),
  fc.tuple(fc.constantFrom(...USUAL), fc.jsonValue()).map(([event, data]) => ({ ...event, data })),
  fc.tuple(fc.constantFrom(...USUAL), fc.jsonValue()).map(([event, more]) => ({ ...event, data: { ...(event as { data: object }).data, more } })),
  fc.tuple(fc.constantFrom(...USUAL), fc.array(fc.nat(9))).map(([event, sourceEventSeqs]) => ({ ...event, sourceEventSeqs })),
  fc.constantFrom(...USUAL).map((event) => ({ ...event, ignorable: true })),
  fc.constantFrom(...USUAL).map((event) => ({ ...event, data: Object.fromEntries(Object.entries((event as { data: object }).data).reverse()) })),
  fc.tuple(fc.string({ unit: 'binary' }), fc.nat(2)).map(([said, index]) => chunk({ type: 'text-delta', index, text: said })),
  fc.tuple(fc.nat(3), fc.nat(3)).map(([turn, step]) => ({ type: 'step/start', data: { turn, step } })),
)

test('whatever was packed is what is unpacked', () => {
  fc.assert(
    fc.property(fc.nat(1_000), fc.array(fc.tuple(odd, fc.nat(3)), { minLength: 1, maxLength: 60 }), (first, list) => {
      let time = 1_700_000_000_000
      const events = list.map(([{ type, ...rest }, later], i) => {
        time += later
        return { type, seq: first + i, time, ...rest } as unknown as SessionEvent
      })
      const row = new FormedRow(first)
      for (const event of events) row.add(event)
      const back = unformed(JSON.parse(row.end()), first)
      expect(JSON.stringify(back?.events)).toBe(JSON.stringify(events))
      const few = unformed(JSON.parse(new FormedRowOf(first, events).text), first, false)
      expect([few?.count, few?.time]).toEqual([events.length, time])
    }),
    { numRuns: 600 },
  )
})

class FormedRowOf {
  readonly text: string
  constructor(first: number, events: readonly SessionEvent[]) {
    const row = new FormedRow(first)
    for (const event of events) row.add(event)
    this.text = row.end()
  }
}
