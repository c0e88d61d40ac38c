/**
 * A failure seen in production, as a test: the model once asked for a refund of "12.50", which is no number of cents.
 * `pawl cassette SESSION > cassette.jsonl` wrote down what it said; here it says so again. Run with vitest.
 */
import { readFileSync } from 'node:fs'
import { createAgent, tool } from 'pawl'
import { cassette } from 'pawl/adapters'
import { memoryStore } from 'pawl/log'
import { expect, test } from 'vitest'

const lines = readFileSync(new URL('cassette.jsonl', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
const recording = lines.map((line) => JSON.parse(line))

const SYSTEM = 'You refund orders. Amounts are in cents.'
const refund = (refunded: unknown[]) =>
  tool({
    name: 'refund',
    description: 'Refunds an order.',
    parameters: {
      type: 'object',
      properties: { order: { type: 'string' }, cents: { type: 'integer' } },
      required: ['order', 'cents'],
      additionalProperties: false,
    },
    execute: (args) => void refunded.push(args),
  })

test('an amount in words is refused, and the refund is made once', async () => {
  const refunded: unknown[] = []
  const model = cassette(recording)
  const agent = await createAgent({ model, store: memoryStore(), system: SYSTEM, tools: [refund(refunded)] })
  const { reason, text } = await agent.run('Give order A-17 its 12.50 back.')
  expect({ reason, text }).toEqual({ reason: { kind: 'completed' }, text: 'Order A-17 got 12.50 back.' })
  expect(refunded).toEqual([{ order: 'A-17', cents: 1250 }])
  expect(model.left).toBe(0) // all of the recording was asked for
  await agent.close()
})

test('what is asked now and was not asked then is told, unless it does not matter', async () => {
  const ask = async (match: 'exact' | 'loose') => {
    const model = cassette(recording, { match })
    const tools = [refund([])]
    const agent = await createAgent({ model, store: memoryStore(), system: `${SYSTEM} Be kind.`, tools })
    const { reason } = await agent.run('Give order A-17 its 12.50 back.')
    await agent.close()
    return reason
  }
  expect(await ask('exact')).toMatchObject({ kind: 'error', error: { code: 'CASSETTE_MISMATCH' } })
  expect(await ask('loose')).toEqual({ kind: 'completed' })
})
