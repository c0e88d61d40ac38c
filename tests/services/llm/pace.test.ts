/** A model is read no faster than the store takes what it says, and never so fast that nothing else gets its turn. */
import { describe, expect, test } from 'vitest'
import { createAgent } from '../../../src/agent.ts'
import type { StreamChunk } from '../../../src/log/messages.ts'
import { memoryStore } from '../../../src/log/stores/memory.ts'
import type { ModelAdapter } from '../../../src/services/llm/adapter.ts'
import { ofType, settle, startAgent } from '../../kit/agents.ts'
import { faultyStore } from '../../kit/faulty-store.ts'

const open: StreamChunk = { type: 'block-start', index: 0, blockType: 'text' }
const delta = (text: string): StreamChunk => ({ type: 'text-delta', index: 0, text })
const stop: StreamChunk = { type: 'finish', reason: { kind: 'stop' } }

/** Answers with that many one-letter deltas, each there at once. */
function fluent(deltas = Number.POSITIVE_INFINITY): ModelAdapter & { readonly pulled: number } {
  let pulled = 0
  const at = (n: number): StreamChunk => {
    if (n === 0) return open
    if (n <= deltas) return delta(letterOf(n))
    return n === deltas + 1 ? { type: 'block-end', index: 0, block: { type: 'text', text: lettersTo(deltas) } } : stop
  }
  const next = async (): Promise<IteratorResult<StreamChunk>> => ({ done: false, value: at(pulled++) })
  return {
    provider: 'p',
    model: 'm',
    get pulled() {
      return pulled
    },
    stream: () => ({ [Symbol.asyncIterator]: () => ({ next }) }),
  }
}

const letterOf = (n: number): string => String.fromCharCode(97 + (n % 26))
const lettersTo = (n: number): string => Array.from({ length: n }, (_, i) => letterOf(i + 1)).join('')

/** What the log may hold of an answer to come, in chunks of one letter: 1 MiB that waits, and what is on its way. */
const AHEAD = 8_192

describe('a store that does not answer', () => {
  test('holds up the model, and when it goes on all is there in order', async () => {
    const store = faultyStore(memoryStore(), { seed: 1, maxTurns: 0 })
    const model = fluent(20_000)
    await using started = await startAgent({ model, store })
    // The one that opens the turn goes through, or the model would not be asked.
    store.script('append', 'late', 1)
    const turn = started.agent.run('go on')
    await settle(400)
    const { pulled } = model
    expect(pulled).toBeGreaterThan(1_000)
    expect(pulled).toBeLessThan(AHEAD)
    await settle(100)
    expect(model.pulled).toBe(pulled)

    store.answerLate()
    const { text, reason } = await turn
    expect(reason).toEqual({ kind: 'completed' })
    expect(model.pulled).toBe(20_003)
    const said = ofType(await started.log(), 'assistant/chunk').map(({ data }) => data.chunk)
    expect(said.map((chunk) => ('text' in chunk ? chunk.text : '')).join('')).toBe(text)
    expect(text).toBe(lettersTo(20_000))
  })

  test('holds up no cancel', async () => {
    const store = faultyStore(memoryStore(), { seed: 1, maxTurns: 0 })
    const model = fluent()
    await using started = await startAgent({ model, store })
    store.script('append', 'late', 1)
    const turn = started.agent.run('go on')
    await settle(400)
    const cancelled = started.agent.cancel({ kind: 'user' })
    const { pulled } = model
    await settle()
    expect(model.pulled).toBe(pulled)
    store.answerLate()
    await cancelled
    expect((await turn).reason).toEqual({ kind: 'aborted', cause: { kind: 'user' } })
  })
})

describe('a model whose chunks are all there at once', () => {
  /** How many chunks came between two turns of the event loop, at most. */
  const mostPerTurn = (models: readonly { readonly pulled: number }[]) => {
    let last = 0
    let most = 0
    let over = false
    const pulled = (): number => models.reduce((sum, model) => sum + model.pulled, 0)
    const look = (): void => {
      most = Math.max(most, pulled() - last)
      last = pulled()
      if (!over) setImmediate(look)
    }
    setImmediate(look)
    return () => {
      over = true
      return most
    }
  }

  test('lets the event loop turn', async () => {
    const model = fluent(5_000)
    // Nobody observes it: each delta that somebody is told of has an append of its own.
    const agent = await createAgent({ model, store: memoryStore() })
    const most = mostPerTurn([model])
    await agent.run('go on')
    expect(most()).toBeLessThan(300)
    await agent.close()
  })

  test('counts with all others of the process', async () => {
    const models = Array.from({ length: 20 }, () => fluent(500))
    const agents = await Promise.all(models.map((model) => createAgent({ model, store: memoryStore() })))
    const most = mostPerTurn(models)
    await Promise.all(agents.map((agent) => agent.run('go on')))
    expect(most()).toBeLessThan(300)
    for (const agent of agents) await agent.close()
  })

  test('can be cancelled', async () => {
    const model = fluent()
    await using started = await startAgent({ model })
    const turn = started.agent.run('go on')
    await settle(3)
    await started.agent.cancel({ kind: 'user' })
    expect((await turn).reason.kind).toBe('aborted')
    expect(model.pulled).toBeLessThan(2_000)
  })

  test('and of which nothing can be shown yet is not read for ever', async () => {
    // A private key that does not end: each line of it may be followed by one more.
    let pulled = 0
    const stream = async function* (): AsyncGenerator<StreamChunk> {
      yield open
      yield delta('-----BEGIN PRIVATE KEY-----\n')
      while (true) {
        pulled += 1
        yield delta('A'.repeat(10_000))
      }
    }
    await using started = await startAgent({ model: { provider: 'p', model: 'm', stream } })
    const { reason } = await started.agent.run('show me the key')
    expect(reason).toMatchObject({ kind: 'error', error: { code: 'RESPONSE_TOO_LARGE' } })
    expect(pulled).toBeLessThan(110)
  })
})
