/**
 * Worlds in which the model, the tools and the hooks say anything at all, secrets in every place: the agent comes to the
 * end of its turn, its log holds nothing that was never checked or masked, and any process opens it again.
 */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type AgentOptions, createAgent } from '../../src/agent.ts'
import type { StreamChunk } from '../../src/log/messages.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { scripted } from '../../src/services/adapters/scripted.ts'
import type { ModelAdapter } from '../../src/services/llm/adapter.ts'
import { createMask } from '../../src/services/masking/mask.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { countingIds, stored } from '../kit/agents.ts'
import { untrustworthy } from '../kit/careful.ts'

const SECRETS = ['correct-horse', 'b4ttery"staple', 'correct-horse-b4ttery']

const words = fc.oneof(
  fc.constantFrom(
    '',
    'echo',
    'hm',
    'c1',
    '{}',
    '{"a":1}',
    ...SECRETS,
    `of ${SECRETS[2]}!`,
    JSON.stringify({ k: SECRETS[1] }),
  ),
  fc.string({ unit: 'binary', maxLength: 6 }),
)
const leaf = fc.oneof(
  { weight: 6, arbitrary: words },
  fc.integer(),
  fc.boolean(),
  fc.constantFrom(null, undefined, -0, Number.NaN),
)
const keys = fc.constantFrom('note', 'meta', '__proto__', 'toJSON', 'text', 'password')
const { anything } = fc.letrec((tie) => ({
  anything: fc.oneof(
    { maxDepth: 2, depthSize: 'small' },
    leaf,
    fc.array(tie('anything'), { maxLength: 2 }),
    fc.dictionary(keys, tie('anything'), { maxKeys: 3 }),
  ),
}))
/** What belongs there, and now and then anything. */
const mostly = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 12, arbitrary }, { weight: 1, arbitrary: anything })
const open = (fields: Readonly<Record<string, fc.Arbitrary<unknown>>>): fc.Arbitrary<unknown> =>
  mostly(
    fc
      .tuple(fc.record(fields), fc.option(fc.dictionary(keys, anything, { maxKeys: 1 }), { nil: {} }))
      .map(([own, more]) => ({ ...more, ...own })),
  )

/** What names something is never masked: nothing of ours would find it again. */
const naming = (...names: readonly string[]): fc.Arbitrary<unknown> =>
  fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom(...names) },
    { weight: 1, arbitrary: fc.constantFrom(7, null, undefined) },
  )

const index = mostly(fc.nat(2))
const block = fc.oneof(
  open({ type: fc.constant('text'), text: mostly(words) }),
  open({
    type: fc.constant('tool-call'),
    id: mostly(words),
    name: mostly(fc.constant('echo')),
    arguments: mostly(words),
  }),
  open({ type: fc.constant('of-its-own'), data: anything }),
)
const failure = open({ code: naming('QUOTA', 'MINE'), message: mostly(words) })
const chunk = fc.oneof(
  open({ type: fc.constant('block-start'), index, blockType: naming('text', 'tool-call') }),
  {
    weight: 4,
    arbitrary: open({ type: fc.constantFrom('text-delta', 'reasoning-delta'), index, text: mostly(words) }),
  },
  open({
    type: fc.constant('tool-call-delta'),
    index,
    id: mostly(words),
    name: mostly(fc.constantFrom('echo', ...SECRETS)),
    argumentsDelta: mostly(words),
  }),
  { weight: 2, arbitrary: open({ type: fc.constant('block-end'), index, block }) },
  open({ type: fc.constant('usage'), usage: open({ inputTokens: fc.nat(), outputTokens: fc.nat() }) }),
  open({
    type: fc.constant('finish'),
    reason: open({ kind: fc.constantFrom('stop', 'error', 'max-tokens'), failure }),
    replayState: open({ response: anything }),
  }),
)
const call = words.map((said): readonly StreamChunk[] => [
  { type: 'block-start', index: 0, blockType: 'tool-call' },
  {
    type: 'block-end',
    index: 0,
    block: { type: 'tool-call', id: 'c1', name: 'echo', arguments: JSON.stringify({ said }) },
  },
  { type: 'finish', reason: { kind: 'tool-calls' } },
])
const answer = fc.oneof(fc.array(chunk, { maxLength: 6 }), call)
const outcome = fc.oneof(
  open({ kind: fc.constant('ok'), value: anything, content: mostly(fc.array(block, { maxLength: 2 })) }),
  open({
    kind: fc.constant('error'),
    text: mostly(words),
    error: open({ name: naming('Mine'), code: naming('MINE', 'TOOL_NOT_STARTED') }),
  }),
)
const config = open({
  provider: naming('p', 'q'),
  model: naming('m'),
  stop: mostly(fc.array(words, { maxLength: 1 })),
})
const world = fc.record({
  answers: fc.array(answer, { minLength: 1, maxLength: 3 }),
  body: anything,
  prepared: fc.option(open({ config, contextWindow: mostly(fc.integer({ min: 1 })) }), { nil: undefined }),
  prompt: fc.option(open({ system: mostly(words), tools: mostly(fc.constant([])) }), { nil: undefined }),
  outcome: fc.option(outcome, { nil: undefined }),
  judged: fc.option(
    open({
      kind: fc.constantFrom('accept', 'block'),
      value: anything,
      feedback: mostly(words),
      contexts: mostly(fc.array(words, { maxLength: 2 })),
    }),
    { nil: undefined },
  ),
  allowed: fc.option(open({ kind: fc.constantFrom('allow', 'deny', 'deny'), reason: mostly(words) }), {
    nil: undefined,
  }),
  stopping: fc.option(open({ kind: fc.constantFrom('completed', 'stopped-by-policy'), policy: mostly(words) }), {
    nil: undefined,
  }),
})
type Worlds = typeof world extends fc.Arbitrary<infer W> ? W : never

const given = (value: unknown): never => value as never

function optionsOf({
  answers,
  body,
  prepared,
  ...hooked
}: Worlds): Pick<AgentOptions, 'model' | 'tools' | 'hooks' | 'retry'> {
  let asked = 0
  const model: ModelAdapter = {
    provider: 'p',
    model: 'm',
    ...(prepared === undefined ? {} : { prepare: async () => given(prepared) }),
    async *stream() {
      yield* (answers[asked++] ?? []) as StreamChunk[]
    },
  }
  const echo = tool({ name: 'echo', description: 'x', parameters: {}, execute: () => body })
  const { prompt, outcome, judged, allowed, stopping } = hooked
  const hooks = Object.fromEntries(
    Object.entries({
      'system-prompt/assemble': prompt,
      'tools/execute': outcome,
      'tools/post-execute': judged,
      'tools/pre-execute': allowed,
      'agent/turn-stopping': stopping,
    }).flatMap(([name, answered]) => (answered === undefined ? [] : [[name, () => given(answered)]])),
  )
  return { model, tools: [echo], hooks, retry: { maxRetries: 0 } }
}

test('whatever is said in them, the log holds nothing that was never checked', async () => {
  const kinds = new Set<string>()
  await fc.assert(
    fc.asyncProperty(world, async (said) => {
      const store = memoryStore()
      const options = { store, sessionId: 's', newId: countingIds(), secrets: SECRETS }
      const agent = await createAgent({ ...options, ...optionsOf(said) })
      const { reason } = await agent.run(`say it: ${SECRETS.join(' ')}`)
      await agent.close()
      const log = await stored(store, 's')
      for (const { type } of log) kinds.add(type)
      kinds.add(reason.kind)
      expect(untrustworthy(log, createMask({ secrets: SECRETS }))).toBeUndefined()
      const text = JSON.stringify(log)
      for (const secret of SECRETS) expect(text).not.toContain(JSON.stringify(secret).slice(1, -1))
      const again = await createAgent({ ...options, newId: countingIds('again'), model: scripted(['ok']) })
      expect((await again.run('and?')).reason).toEqual({ kind: 'completed' })
      await again.close()
    }),
    { numRuns: Number(process.env.PAWL_RUNS ?? 60) },
  )
  for (const seen of ['completed', 'error', 'tool/result', 'assistant/message']) expect(kinds).toContain(seen)
})
