/** A tool written by hand is held to what `tool()` vouches for: whatever it says is the outcome of its calls. */
import { describe, expect, test } from 'vitest'
import { scripted, toolCall } from '../../../src/services/adapters/scripted.ts'
import type { Tool } from '../../../src/services/tools/contract.ts'
import { ownTool } from '../../../src/services/tools/foreign.ts'
import { tool } from '../../../src/services/tools/tool.ts'
import { ofType, startAgent } from '../../kit/agents.ts'

const made = tool({ name: 'echo', description: 'Says it back.', parameters: { type: 'object' }, execute: () => 'said' })

/** A tool as JavaScript may write it. */
const byHand = (odd: object): Tool => ({ ...made, ...odd }) as Tool

/** How a call of the tool was answered, and its schedule; the log itself is checked when the agent closes. */
async function called(given: Tool) {
  await using started = await startAgent({ model: scripted([toolCall('echo', { a: 1 }), 'done']), tools: [given] })
  const { reason } = await started.agent.run('go')
  expect(reason).toEqual({ kind: 'completed' })
  const log = await started.log()
  return {
    block: ofType(log, 'tool/result')[0]?.data.message.content[0],
    result: ofType(log, 'tool/result')[0]?.data,
    mode: ofType(log, 'assistant/message')[0]?.data.calls[0]?.mode,
  }
}

test('a tool that was made by tool() is taken as it is, a copy of one is not', () => {
  expect(ownTool(made)).toBe(made)
  expect(ownTool({ ...made })).not.toBe(made)
  expect(ownTool(ownTool({ ...made }))).toMatchObject({ name: 'echo', schema: made.schema, onCrash: 'unknown' })
})

test('a tool written by hand that does as it should works as any', async () => {
  const { block, mode } = await called(byHand({ modeOf: () => 'parallel' }))
  expect(block).toMatchObject({ content: [{ type: 'text', text: 'said' }] })
  expect(block).not.toHaveProperty('isError')
  expect(mode).toBe('parallel')
})

describe('what it renders', () => {
  test.each<[string, unknown]>([
    ['nothing', undefined],
    ['a kind of its own', { kind: 'fine' }],
    ['no content', { kind: 'ok', value: 1 }],
    ['a block that is none', { kind: 'ok', value: 1, content: [{ type: 'text', text: 5 }] }],
    ['what is no JSON', { kind: 'ok', value: 1, content: [{ type: 'text', text: 'x', at: new Date(0) }] }],
    ['a value that is no JSON', { kind: 'ok', value: Number.NaN, content: [] }],
  ])('is an invalid output if it is %s', async (_, rendered) => {
    const { result, block } = await called(byHand({ render: async () => rendered }))
    expect(result?.error?.code).toBe('INVALID_TOOL_OUTPUT')
    expect(block?.isError).toBe(true)
  })

  test('stays its own: nothing of it is frozen, and what it does to it later changes no log', async () => {
    const content = [{ type: 'text', text: 'at first' }]
    const { block } = await called(byHand({ render: async () => ({ kind: 'ok', value: content, content }) }))
    expect(Object.isFrozen(content) || Object.isFrozen(content[0])).toBe(false)
    for (const said of content) said.text = 'later'
    expect(block?.content).toEqual([{ type: 'text', text: 'at first' }])
  })
})

test('a mode that is none, or a classifier that throws, means alone', async () => {
  const throwing = () => {
    throw new Error('no idea')
  }
  for (const modeOf of [() => 'sideways', () => undefined, throwing]) {
    expect((await called(byHand({ modeOf }))).mode).toBe('exclusive')
  }
})

test('meta that is no JSON fails the call', async () => {
  const { block } = await called(byHand({ meta: () => ({ at: new Date(0) }) }))
  expect(block?.isError).toBe(true)
})

test('arguments are its own to change, and a check that answers nothing refuses them', async () => {
  const spoiling = async (args: { a: number }) => {
    args.a = 2
    return { kind: 'ok', args }
  }
  expect((await called(byHand({ parse: spoiling }))).block?.isError).toBeUndefined()
  expect((await called(byHand({ parse: async () => undefined }))).result?.error?.code).toBe('INVALID_ARGS')
})

test.each<[string, object, string]>([
  ['no schema', { schema: undefined }, 'is not JSON'],
  ['a schema that is none', { schema: { name: 5, description: '', parameters: {} } }, 'schema.name must be'],
  ['an answer to a crash that is none', { onCrash: 'party' }, '"onCrash" of tool "echo"'],
])('%s is refused before any model sees it', async (_, odd, why) => {
  const refused = startAgent({ tools: [byHand(odd)] })
  await expect(refused).rejects.toMatchObject({ code: 'INVALID_OPTION', message: expect.stringContaining(why) })
})
