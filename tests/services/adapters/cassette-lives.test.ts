import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { PawlError } from '../../../src/log/errors.ts'
import type { SessionEvent } from '../../../src/log/events.ts'
import type { StreamChunk } from '../../../src/log/messages.ts'
import { cassette } from '../../../src/services/adapters/cassette.ts'
import {
  type Attempt,
  chunks,
  fails,
  finish,
  gate,
  type Part,
  pause,
  reasoning,
  scripted,
  text,
  toolCall,
  usage,
} from '../../../src/services/adapters/scripted.ts'
import type { ModelAdapter } from '../../../src/services/llm/adapter.ts'
import { tool } from '../../../src/services/tools/tool.ts'
import { startAgent } from '../../kit/agents.ts'
import { damages } from '../../kit/damage.ts'
import { livedLogs } from '../../kit/lived-logs.ts'
import { attemptsIn, reasonsOf, relive, type Told } from '../../kit/relive.ts'

const lives: (readonly [string, readonly SessionEvent[]])[] = []
for await (const life of livedLogs()) lives.push(life)

type View = (told: Told) => unknown

async function expectTheSame(events: readonly SessionEvent[], view: View = (told) => told): Promise<void> {
  const { log, left } = await relive(events)
  expect(attemptsIn(log).map(view)).toEqual(attemptsIn(events).map(view))
  expect(reasonsOf(log, events)).toEqual(reasonsOf(events))
  expect(left).toBe(0)
}

describe('a life lived again with its cassette is asked, says and ends the same', () => {
  test.each(lives)('%s', (_, events) => expectTheSame(events))
})

test('of a damaged life a cassette is made, or what is wrong with it is said', () => {
  const codes = new Set<string>()
  // One kind of damage is tried once a life; where in it does not matter here.
  for (const [, events] of lives.slice(0, 12)) {
    const tried = new Set<string>()
    for (const { log, kind } of damages(events)) {
      if (tried.has(kind)) continue
      tried.add(kind)
      try {
        cassette(log)
      } catch (error) {
        if (!(error instanceof PawlError)) throw new Error(kind, { cause: error })
        codes.add(error.code)
      }
    }
  }
  expect(codes).toContain('INVALID_LOG')
})

/** An answer whose provider wants its state back. */
const signed: readonly StreamChunk[] = [
  { type: 'block-start', index: 0, blockType: 'reasoning' },
  { type: 'reasoning-delta', index: 0, text: 'hm' },
  { type: 'block-end', index: 0, block: { type: 'reasoning', text: 'hm' } },
  { type: 'block-start', index: 1, blockType: 'text' },
  { type: 'block-end', index: 1, block: { type: 'text', text: 'so' } },
  { type: 'finish', reason: { kind: 'stop' }, replayState: { response: { id: 'r' }, blocks: ['signature', null] } },
]

const word = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
const said = fc.oneof(
  fc.record({ kind: fc.constant('text' as const), text: word, deltas: fc.integer({ min: 1, max: 4 }) }),
  fc.record({ kind: fc.constant('reasoning' as const), text: word }),
  fc.record({
    kind: fc.constant('call' as const),
    name: fc.constantFrom('look', 'pay', 'unknown'),
    args: fc.oneof(fc.jsonValue(), fc.constant('{"cut')),
    // Missing and repeated ids are minted anew.
    id: fc.constantFrom('', 'c1', 'c2', 'c3', 'c4'),
  }),
)
const ending = fc.constantFrom('stop', 'stop', 'stop', 'SERVER', 'AUTH', 'closed', 'max-tokens', 'cancel', 'signed')
const attempt = fc.record({ said: fc.array(said, { maxLength: 4 }), ending, spent: fc.boolean() })

type Drawn = typeof attempt extends fc.Arbitrary<infer T> ? T : never

function partOf(one: Drawn['said'][number]): Part {
  if (one.kind === 'text') return text(one.text, { deltas: one.deltas })
  return one.kind === 'reasoning' ? reasoning(one.text) : toolCall(one.name, one.args, { id: one.id })
}

/** What the model does, and what comes to pass when it is cancelled. */
function attemptOf(drawn: Drawn, cancel: () => void): Attempt {
  const parts = drawn.said.map(partOf)
  const spent = drawn.spent ? [usage({ inputTokens: 7, outputTokens: 3, reasoningTokens: 1 })] : []
  switch (drawn.ending) {
    case 'stop':
      return [...parts, ...spent]
    case 'closed':
      return [...parts, chunks([])]
    case 'max-tokens':
      return [...parts, ...spent, finish({ kind: 'max-tokens' })]
    case 'signed':
      return chunks(signed)
    case 'cancel': {
      const held = gate()
      void held.reached.then(() => setImmediate(cancel))
      return [...parts, pause(held)]
    }
    default:
      return [...parts, fails({ code: drawn.ending, message: 'it is down', status: 503 })]
  }
}

const tools = ['look', 'pay'].map((name) =>
  tool({
    name,
    description: name,
    parameters: { type: 'object' },
    execute: (_, { run }) => (name === 'pay' ? Promise.reject(new Error('no money')) : { run }),
  }),
)

async function recorded(drawn: readonly Drawn[], facts: { window: boolean; defaults: boolean }) {
  const model = scripted((_, n) => {
    const one = drawn[n]
    return one ? attemptOf(one, () => void started.agent.cancel()) : 'the end'
  })
  const price = { input: 1, output: 2.5 }
  const adapter: ModelAdapter = {
    ...model,
    prepare: async (config) => ({
      config: facts.defaults ? { ...config, maxTokens: 4_096, reasoningEffort: 'high' } : config,
      ...(facts.defaults ? { adapterDefaults: { maxTokens: true, reasoningEffort: true } } : {}),
      ...(facts.window ? { contextWindow: 64_000, price } : {}),
    }),
  }
  const retry = { backoff: { initialDelayMs: 1, maxDelayMs: 1 } }
  await using started = await startAgent({
    model: adapter,
    tools,
    retry,
    system: 'be brief',
    newId: () => crypto.randomUUID(),
  })
  while (model.requests.length < drawn.length) await started.agent.run(`turn after ${model.requests.length}`)
  return started.log()
}

/** Each block's deltas as one: what may become a credential is held by the mask, so a text is not always cut as it was. */
function joined({ chunks: said, ...rest }: Told): unknown {
  const whole: StreamChunk[] = []
  for (const chunk of said) {
    const last = whole.at(-1)
    if (chunk.type === 'tool-call-delta' && last?.type === chunk.type && last.index === chunk.index)
      whole.splice(-1, 1, { ...last, argumentsDelta: last.argumentsDelta + chunk.argumentsDelta })
    else if (chunk.type === 'text-delta' && last?.type === chunk.type && last.index === chunk.index)
      whole.splice(-1, 1, { ...last, text: last.text + chunk.text })
    else if (chunk.type === 'reasoning-delta' && last?.type === chunk.type && last.index === chunk.index)
      whole.splice(-1, 1, { ...last, text: last.text + chunk.text })
    else whole.push(chunk)
  }
  return { ...rest, chunks: whole }
}

test('and so is any session of a scripted model', async () => {
  const facts = fc.record({ window: fc.boolean(), defaults: fc.boolean() })
  await fc.assert(
    fc.asyncProperty(fc.array(attempt, { minLength: 1, maxLength: 6 }), facts, async (drawn, known) =>
      expectTheSame(await recorded(drawn, known), joined),
    ),
    { numRuns: 30 },
  )
}, 60_000)
