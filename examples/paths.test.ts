/**
 * Every way that an agent with your tool can go: its turns cancelled, its process killed while the tool runs, its
 * approval asked for and refused. Run with vitest.
 */

import { tool } from 'pawl'
import { agentPaths, playPath } from 'pawl/testing'
import { expect, test } from 'vitest'

const charged: string[] = []
const charge = tool({
  name: 'charge',
  description: 'Charges the customer',
  parameters: { type: 'object', properties: { cents: { type: 'integer' } }, required: ['cents'] },
  execute: (_args, { idempotencyKey }) => void charged.push(idempotencyKey),
})
const paths = agentPaths({
  tools: [{ tool: charge, args: { cents: 500 } }],
  hooks: { 'agent/pre-step': ['enter'], 'tools/post-execute': ['accept'], 'agent/turn-stopping': ['none'] },
  ...{ maxSteps: 1, extraMessages: 0, retries: 0, failures: 0, extras: 1 },
})

test.each(paths)('$label', async (path) => {
  await playPath(path)
  expect(new Set(charged).size).toBe(charged.length)
})
