/** What was allowed is what the body gets: neither who looks at a call nor a body that ran before changes its arguments. */
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { describe, expect, test } from 'vitest'
import { scripted, toolCall } from '../../../src/services/adapters/scripted.ts'
import type { Hooks } from '../../../src/services/hooks/contract.ts'
import type { ToolCallInfo } from '../../../src/services/tools/contract.ts'
import { type ToolDefinition, tool } from '../../../src/services/tools/tool.ts'
import { ofType, startAgent } from '../../kit/agents.ts'

interface Given {
  readonly names: Set<string>
  readonly list: string[]
}

/** A schema that makes a set of a list, and counts how often it is asked. */
function setOf() {
  const asked = { times: 0 }
  const parameters: StandardSchemaV1<{ names: string[] }, Given> = {
    '~standard': {
      version: 1,
      vendor: 'by-hand',
      validate: (value) => {
        asked.times += 1
        const list = (value as { names: string[] }).names
        return { value: { names: new Set(list), list } }
      },
    },
  }
  return { asked, parameters }
}

/** The same call twice in one turn; what its bodies got. */
async function bodies(
  hooks: Partial<Hooks> = {},
  more: Partial<ToolDefinition<StandardSchemaV1<unknown, Given>>> = {},
) {
  const { asked, parameters } = setOf()
  const got: string[] = []
  const greet = tool({
    name: 'greet',
    description: 'Greets them.',
    parameters,
    jsonSchema: { type: 'object' },
    ...more,
    execute({ names, list }) {
      got.push([...names, ...list].join(' '))
      names.clear()
      list.length = 0
    },
  })
  const call = toolCall('greet', { names: ['ann', 'bob'] })
  const model = scripted([call, call, 'done'])
  await using started = await startAgent({ model, tools: [greet], hooks })
  expect((await started.agent.run('go')).reason).toEqual({ kind: 'completed' })
  const raw = ofType(await started.log(), 'tool/call').map(({ data }) => data.arguments)
  expect(raw).toEqual(Array(2).fill('{"names":["ann","bob"]}'))
  return { got, asked: asked.times }
}

const ASKED_FOR = ['ann bob ann bob', 'ann bob ann bob']

const spoil = ({ args }: Pick<ToolCallInfo, 'args'>) => {
  const { names, list } = args as Given
  names.clear()
  names.add('eve')
  expect(() => list.push('eve')).toThrow(TypeError)
}

describe('the arguments of a body', () => {
  test('are checked once if nobody else is given them', async () => {
    expect(await bodies()).toEqual({ got: ASKED_FOR, asked: 2 })
  })

  test('are what they were when a policy changed what it was shown', async () => {
    const { got } = await bodies({
      'tools/pre-execute': (info, next) => {
        spoil(info)
        return next()
      },
    })
    expect(got).toEqual(ASKED_FOR)
  })

  test('are what they were when the question of an approval changed what it was asked about', async () => {
    const { got } = await bodies(
      {},
      {
        needsApproval({ names, list }) {
          names.clear()
          list.push('eve')
          return false
        },
        mode({ names }) {
          names.clear()
          return 'parallel'
        },
      },
    )
    expect(got).toEqual(ASKED_FOR)
  })

  test('are what hooks are told of the call when the body changed its own', async () => {
    const told: unknown[] = []
    await bodies({
      'tools/post-execute': ({ args }, next) => {
        told.push((args as Given).list)
        return next()
      },
    })
    expect(told).toEqual([
      ['ann', 'bob'],
      ['ann', 'bob'],
    ])
  })
})
