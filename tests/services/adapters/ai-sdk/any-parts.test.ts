/** Whatever a provider streams, in whatever order: one finish, the grammar of chunks, and no tool run that was not asked for. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { AiSdkModel } from '../../../../src/services/adapters/ai-sdk/model.ts'
import { aiSdk } from '../../../../src/services/adapters/ai-sdk.ts'
import { tool } from '../../../../src/services/tools/tool.ts'
import { ofType, startAgent } from '../../../kit/agents.ts'
import { finish3, streamOf, text3 } from '../../../kit/ai-sdk-models.ts'
import { ask } from '../../../kit/ask-adapter.ts'
import { brokenPromise } from '../../../kit/corpus/contract.ts'

/** Only slow where the machine is. */
const patient = { timeout: 60_000 }

type Part = Readonly<Record<string, unknown>>

const id = fc.constantFrom('0', '1', 'c1', '')
const toolName = fc.constantFrom('look', 'search')
const input = fc.constantFrom('{}', '{"a":1}', '{"a":', '', 7, { a: 1 }, undefined)
const providerMetadata = fc.constantFrom(undefined, {}, { mock: { signature: 'S==' } }, 'odd', { mock: 1n })
const words = fc.constantFrom('', 'x', ' ', 'héllo', undefined, 7)
const flag = fc.constantFrom(undefined, false, true)

const part: fc.Arbitrary<Part> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constantFrom('text-start', 'text-end', 'reasoning-start', 'reasoning-end'),
      id,
      providerMetadata,
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constantFrom('text-delta', 'reasoning-delta', 'tool-input-delta'),
      id,
      delta: words,
      providerMetadata,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant('tool-input-start'),
      id,
      toolName,
      providerExecuted: flag,
      providerMetadata,
    }),
  },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('tool-input-end'), id }) },
  {
    weight: 3,
    arbitrary: fc.record({
      type: fc.constant('tool-call'),
      toolCallId: id,
      toolName,
      input,
      providerExecuted: flag,
      providerMetadata,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant('tool-result'),
      toolCallId: id,
      toolName,
      result: input,
      preliminary: flag,
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constantFrom('file', 'reasoning-file'),
      mediaType: words,
      data: fc.constantFrom('AQ==', new Uint8Array([1]), { type: 'url', url: 'https://e.org' }, undefined, 1n),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constantFrom('source', 'custom', 'raw', 'ping', 'stream-start', 'response-metadata', 'hologram'),
      id,
      warnings: fc.constantFrom(undefined, [], [1n]),
    }),
  },
)

const finish: fc.Arbitrary<Part> = fc.record({
  type: fc.constant('finish'),
  finishReason: fc.oneof(
    fc.constantFrom('stop', 'length', 'tool-calls', 'content-filter', 'error', 'other', 'unknown', undefined, 7),
    fc.record({
      unified: fc.constantFrom('stop', 'length', 'tool-calls', 'error', 'other', 'interrupted', undefined),
      raw: fc.constantFrom(undefined, 'end_turn', ''),
    }),
  ),
  usage: fc.constantFrom(undefined, finish3().usage, { inputTokens: 1, outputTokens: 2 }, 'many'),
  providerMetadata,
})

const odd = fc.constantFrom<unknown>(
  null,
  7,
  'text',
  [],
  {},
  { type: 'error', error: new Error('broken') },
  { type: 'error' },
)
const broken = fc.constant(new Error('the stream broke'))

/** Mostly a whole answer: any parts, then a finish, and sometimes more. */
const answers = fc
  .tuple(
    fc.array(fc.oneof({ weight: 12, arbitrary: part }, { weight: 1, arbitrary: odd }), { maxLength: 14 }),
    fc.oneof(
      { weight: 6, arbitrary: finish.map((end) => [end]) },
      { weight: 1, arbitrary: broken.map((end) => [end]) },
      { weight: 1, arbitrary: fc.constant([]) },
    ),
    fc.array(part, { maxLength: 2 }),
  )
  .map(([parts, end, late]) => [...parts, ...end, ...late])

const playing = (...scripts: readonly (readonly unknown[])[]): AiSdkModel => {
  let n = 0
  return {
    specificationVersion: 'v3',
    provider: 'mock',
    modelId: 'm',
    supportedUrls: {},
    doStream: async () => ({ stream: streamOf([...(scripts[n++] ?? [])]) }),
  }
}

test('alone, the adapter never throws, and keeps what every adapter promises', patient, async () => {
  await fc.assert(
    fc.asyncProperty(answers, async (parts) => {
      const said = await ask(aiSdk(playing(parts)), { tools: [{ name: 'look', description: '', parameters: {} }] })
      expect(brokenPromise(said)).toBeUndefined()
      expect(said.findIndex(({ type }) => type === 'usage')).toBeOneOf([-1, said.length - 2])
    }),
    { numRuns: 300 },
  )
})

test(
  'in an agent, the log keeps its rules, and a tool runs once for each call that was made to an end',
  patient,
  async () => {
    await fc.assert(
      fc.asyncProperty(answers, async (parts) => {
        let runs = 0
        const look = tool({
          name: 'look',
          description: 'Looks.',
          parameters: { type: 'object' },
          execute: () => {
            runs += 1
            return 'seen'
          },
        })
        const model = aiSdk(playing(parts, [...text3('ok'), finish3()]))
        // Closing it holds the log to every rule, the grammar of chunks among them.
        await using started = await startAgent({ model, tools: [look], retry: { maxRetries: 0 } })
        await started.agent.run('hi')
        const [answer] = ofType(await started.log(), 'assistant/message')
        const asked = answer?.data.message.content.filter((block) => block.type === 'tool-call') ?? []
        expect(runs).toBeLessThanOrEqual(asked.length)
        const made = parts.filter(isOurs).map(({ toolCallId, input }) => JSON.stringify([toolCallId, input]))
        expect(asked.length).toBeLessThanOrEqual(made.length)
      }),
      { numRuns: 80 },
    )
  },
)

const isOurs = (given: unknown): given is Part =>
  typeof given === 'object' &&
  given !== null &&
  'type' in given &&
  given.type === 'tool-call' &&
  !('providerExecuted' in given && given.providerExecuted === true)
