/** What a step is asked with follows whatever its parts were made of, and is not made again where nothing changed. */
import { describe, expect, test } from 'vitest'
import type { LlmRequest } from '../../../src/log/requests.ts'
import { scripted, toolCall } from '../../../src/services/adapters/scripted.ts'
import type { Hooks } from '../../../src/services/hooks/contract.ts'
import type { ModelAdapter, PreparedCall } from '../../../src/services/llm/adapter.ts'
import type { Tool } from '../../../src/services/tools/contract.ts'
import { tool } from '../../../src/services/tools/tool.ts'
import { ofType, type StartedAgent, startAgent } from '../../kit/agents.ts'

/** Calls `look` in every step but the last; what it was asked, as it was given. */
function asked(steps: number, more: Partial<ModelAdapter> = {}) {
  const script = scripted((_, n) => (n % steps === steps - 1 ? 'done' : toolCall('look', {})))
  const requests: LlmRequest[] = []
  const model: ModelAdapter = {
    ...script,
    ...more,
    stream(request, options) {
      requests.push(request)
      return script.stream(request, options)
    },
  }
  return { model, requests }
}

const look = (act: () => void = () => {}): Tool =>
  tool({
    name: 'look',
    description: 'Looks.',
    parameters: { type: 'object', properties: { at: { type: 'string' } } },
    execute: act,
  })

const headers = async (started: StartedAgent) => ofType(await started.log(), 'request/header').map(({ data }) => data)

describe('a prompt whose parts are changed in place between two steps', () => {
  test('is asked with as it is then, and logged', async () => {
    const section = { name: 'rules', text: 'be brief' }
    const sections = [section]
    const { model, requests } = asked(3)
    const act = (): void => {
      if (sections.length === 1) sections.push({ name: 'more', text: 'and kind' })
      else section.text = 'be long'
    }
    await using started = await startAgent({ model, system: sections, tools: [look(act)] })
    await started.agent.run('go')
    const systems = ['be brief', 'be brief\n\nand kind', 'be long\n\nand kind']
    expect(requests.map(({ system }) => system)).toEqual(systems)
    expect((await headers(started)).map(({ header }) => header.system)).toEqual(systems)
  })

  test('is not changed through the schema that a tool was made of, which stays its owner’s', async () => {
    const parameters = { type: 'object', properties: { at: { type: 'string' } } }
    const byHand = { ...look(), schema: { name: 'look', description: 'Looks.', parameters } } as Tool
    const { model, requests } = asked(2)
    const hooks: Partial<Hooks> = {
      'tools/pre-execute': (_, next) => {
        parameters.properties.at.type = 'number'
        return next()
      },
    }
    await using started = await startAgent({ model, tools: [byHand], hooks })
    await started.agent.run('go')
    expect(Object.isFrozen(parameters) || Object.isFrozen(parameters.properties)).toBe(false)
    const shown = { type: 'object', properties: { at: { type: 'string' } } }
    expect(requests.map(({ tools }) => tools?.[0]?.parameters)).toEqual([shown, shown])
    expect(await headers(started)).toHaveLength(1)
  })

  test('is asked with as a hook gives it, whatever that does to it later', async () => {
    const given = { system: 'first', tools: [{ name: 'look', description: 'Looks.', parameters: {} }] }
    const { model, requests } = asked(3)
    const act = (): void => {
      for (const each of given.tools) each.description += '!'
    }
    const hooks: Partial<Hooks> = { 'system-prompt/assemble': () => given }
    await using started = await startAgent({ model, tools: [look(act)], hooks })
    await started.agent.run('go')
    expect(requests.map(({ system, tools }) => [system, tools?.[0]?.description])).toEqual([
      ['first', 'Looks.'],
      ['first', 'Looks.!'],
      ['first', 'Looks.!!'],
    ])
    expect(await headers(started)).toHaveLength(3)
  })
})

test('a config that its adapter changes in place is asked with as it is then, and logged', async () => {
  const config = { provider: 'scripted', model: 'scripted', stop: ['x'] }
  const prepared: PreparedCall = { config }
  const { model, requests } = asked(3, {
    prepare: async () => {
      if (requests.length > 0) config.stop.push('y')
      return prepared
    },
  })
  await using started = await startAgent({ model, tools: [look()] })
  await started.agent.run('go')
  const stops = [['x'], ['x', 'y'], ['x', 'y', 'y']]
  expect(requests.map(({ stop }) => stop)).toEqual(stops)
  expect((await headers(started)).map(({ header }) => header.config.stop)).toEqual(stops)
})

test.each<[string, Partial<Hooks>]>([
  ['without a hook', {}],
  ['through a hook that changes nothing', { 'system-prompt/assemble': (_, next) => next() }],
  [
    'through a hook that says the same each time',
    { 'system-prompt/assemble': async (_, next) => ({ ...(await next()), system: ['be', 'brief'].join(' ') }) },
  ],
])('%s, what did not change is asked with as the very same', async (_, hooks) => {
  const { model, requests } = asked(4)
  await using started = await startAgent({ model, system: 'be brief', tools: [look()], hooks })
  await started.agent.run('go')
  const [header] = await headers(started)
  expect(await headers(started)).toHaveLength(1)
  expect(requests).toHaveLength(4)
  for (const request of requests) {
    expect(request.tools).toBe(requests[0]?.tools)
    expect(request.tools).toEqual(header?.header.tools)
  }
})
