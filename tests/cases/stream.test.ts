/** From the chunks of a model to an answer in the log. How blocks are assembled stands in assembler.test.ts. */
import { describe, expect, test } from 'vitest'
import type { SessionEvent } from '../../src/log/events.ts'
import type { StreamChunk } from '../../src/log/messages.ts'
import { createSurface } from '../../src/log/projections/surface.ts'
import { demo } from '../../src/services/adapters/demo.ts'
import {
  chunks,
  fails,
  finish,
  hangs,
  type Part,
  reasoning,
  scripted,
  text,
  toolCall,
  usage,
} from '../../src/services/adapters/scripted.ts'
import type { ModelAdapter } from '../../src/services/llm/adapter.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, type StartedAgent, startAgent, typesOf } from '../kit/agents.ts'

const spent = { inputTokens: 7, outputTokens: 3 }
const echo = tool({
  name: 'echo',
  description: 'Says it again',
  parameters: { type: 'object' },
  execute: () => 'again',
})

const chunksOf = (log: readonly SessionEvent[]) => ofType(log, 'assistant/chunk').map(({ data }) => data.chunk)
const answersOf = (log: readonly SessionEvent[]) => ofType(log, 'assistant/message')
const closed = { code: 'STREAM_CLOSED', message: expect.any(String) }
const STREAM_CLOSED = { kind: 'error', error: closed }

describe('a whole answer', () => {
  const said: readonly StreamChunk[] = [
    { type: 'block-start', index: 0, blockType: 'text' },
    { type: 'text-delta', index: 0, text: 'Hel' },
    { type: 'text-delta', index: 0, text: 'lo' },
    { type: 'block-end', index: 0, block: { type: 'text', text: 'Hello' } },
    { type: 'usage', usage: spent },
    { type: 'finish', reason: { kind: 'stop' } },
  ]

  test('[stream-001] every chunk is logged as it came, with its turn, step and attempt, before the answer', async () => {
    await using started = await startAgent({ model: scripted([chunks(said)]) })
    await started.agent.run('hi')
    const log = await started.log()
    const logged = ofType(log, 'assistant/chunk')
    const [first, ...rest] = said
    const at = { turn: 1, step: 1, attempt: 1 }
    expect(logged.map(({ data }) => data)).toEqual([
      { ...at, chunk: first, request: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) },
      ...rest.map((chunk) => ({ ...at, chunk })),
    ])
    expect(answersOf(log).map(({ seq }) => seq)).toEqual([(logged.at(-1)?.seq ?? 0) + 1])
  })

  test('[stream-002] the answer names its chunks as its sources and is appended to the conversation', async () => {
    await using started = await startAgent({ model: scripted([text('one two three', { deltas: 5 })]) })
    await started.agent.run('hi')
    const log = await started.log()
    const seqs = ofType(log, 'assistant/chunk').map(({ seq }) => seq)
    expect(seqs).toHaveLength(8)
    expect(answersOf(log)).toMatchObject([{ surfaceOp: 'append', sourceEventSeqs: seqs }])
  })

  test('[stream-004] without a report of usage the answer has none', async () => {
    await using started = await startAgent({ model: scripted([[text('a')], [text('b'), usage(spent)]]) })
    await started.agent.run('hi')
    await started.agent.run('again')
    const [without, reported] = answersOf(await started.log())
    expect(without?.data).not.toHaveProperty('usage')
    expect(reported?.data.usage).toEqual(spent)
  })

  const replayState = { response: { id: 'r' }, blocks: [{ sig: 1 }, null] }

  test('[stream-018] what a provider wants back is kept at the source of the answer, and goes back with it', async () => {
    const end: StreamChunk = { type: 'finish', reason: { kind: 'stop' }, replayState }
    const model = scripted([[reasoning('hm'), text('a'), chunks([end])], 'b'])
    await using started = await startAgent({ model })
    await started.agent.run('hi')
    const source = { kind: 'model', provider: 'scripted', model: 'scripted', replayState }
    expect(answersOf(await started.log())[0]?.data.message.source).toEqual(source)
    await started.agent.run('again')
    expect(model.requests[1]?.messages[1]?.source).toEqual(source)
  })

  test('[stream-024] calls are run because they are there, whatever the finish says', async () => {
    const model = scripted([[toolCall('echo', {}, { id: 'c1' }), finish({ kind: 'stop' })], 'done'])
    await using started = await startAgent({ model, tools: [echo] })
    await started.agent.run('hi')
    const log = await started.log()
    expect(ofType(log, 'tool/call')).toHaveLength(1)
    expect(ofType(log, 'tool/result')).toMatchObject([{ data: { message: { source: { callId: 'c1' } } } }])
    expect(model.requests).toHaveLength(2)
  })

  test('[stream-025] a finish that speaks of calls where none are ends the turn like any other', async () => {
    const model = scripted([[text('done'), finish({ kind: 'tool-calls' })]])
    await using started = await startAgent({ model, tools: [echo] })
    const { reason } = await started.agent.run('hi')
    expect(reason).toEqual({ kind: 'completed' })
    expect(typesOf(await started.log()).filter((type) => type.startsWith('tool/'))).toEqual([])
    expect(model.requests).toHaveLength(1)
  })

  test.each<[string, () => ModelAdapter]>([
    ['a scripted model', () => scripted([[reasoning('hm'), text('a'), usage(spent)]])],
    ['the demo model', () => demo()],
  ])('[stream-036] usage comes before the finish, which is last: %s', async (_, model) => {
    await using started = await startAgent({ model: model() })
    await started.agent.run('hi')
    const types = chunksOf(await started.log()).map(({ type }) => type)
    expect(types.filter((type) => type === 'usage' || type === 'finish')).toEqual(['usage', 'finish'])
    expect(types.at(-1)).toBe('finish')
  })

  test('[stream-034] the conversation is the same with and without the chunks', async () => {
    const model = scripted([[text('let me see'), toolCall('echo', {})], 'done', fails('AUTH'), 'better'])
    await using started = await startAgent({ model, tools: [echo] })
    for (const message of ['hi', 'more', 'again']) await started.agent.run(message)
    const log = await started.log()
    const derived = (events: readonly SessionEvent[]) => {
      const surface = createSurface()
      for (const event of events) surface.place(event)
      return surface.messages()
    }
    const without = log.filter(({ type }) => type !== 'assistant/chunk')
    expect(without.length).toBeLessThan(log.length)
    const renumbered = without.map((event, seq): SessionEvent => ({ ...event, seq }))
    expect(derived(renumbered)).toEqual(derived(log))
    expect(derived(log)).toEqual(started.agent.session.messages())
    expect(derived(log)).toHaveLength(7)
  })
})

describe('an answer that fails', () => {
  // Replaced: a stream must say how it ended. One that does not was closed early, and may have lost its best part.
  test('[stream-003] a stream that ends with nothing said was closed, and that is what the log says', async () => {
    await using started = await startAgent({ model: scripted([chunks([])]) })
    const { reason } = await started.agent.run('hi')
    const log = await started.log()
    expect(typesOf(log)).toEqual([
      'agent/inbox/spliced',
      'turn/start',
      'agent/inbox/spliced',
      'step/start',
      'user/message',
      'request/header',
      'request/context',
      'assistant/chunk*',
      'step/end',
      'turn/end',
    ])
    expect(chunksOf(log)).toEqual([{ type: 'finish', reason: { kind: 'error', failure: closed } }])
    expect(reason).toEqual(STREAM_CLOSED)
  })

  test('[stream-006] text without a finish is no answer: its chunks stay, the turn ends in STREAM_CLOSED', async () => {
    const block = { type: 'text', text: 'so' } as const
    const said: readonly StreamChunk[] = [
      { type: 'block-start', index: 0, blockType: 'text' },
      { type: 'text-delta', index: 0, text: 'so' },
      { type: 'block-end', index: 0, block },
    ]
    const model = scripted([chunks(said), 'better'])
    await using started = await startAgent({ model })
    expect((await started.agent.run('hi')).reason).toEqual(STREAM_CLOSED)
    const log = await started.log()
    expect(answersOf(log)).toEqual([])
    expect(chunksOf(log).slice(0, 3)).toEqual(said)
    expect(chunksOf(log).at(-1)).toEqual({ type: 'finish', reason: { kind: 'error', failure: closed } })
    await started.agent.run('again')
    expect(JSON.stringify(model.requests[1])).not.toContain('"so"')
  })

  test('[stream-023] the failure of a finish ends step and turn word for word, and is told once', async () => {
    const failure = { message: 'boom', code: 'SERVER', status: 500 }
    const model = scripted([[text('part'), fails(failure)]], { retry: { maxRetries: 0 } })
    await using started = await startAgent({ model })
    const told: unknown[] = []
    started.agent.on('agent/error', (payload) => told.push(payload))
    const { reason } = await started.agent.run('hi')
    const log = await started.log()
    expect(reason).toEqual({ kind: 'error', error: failure })
    expect(chunksOf(log).at(-1)).toEqual({ type: 'finish', reason: { kind: 'error', failure } })
    expect(answersOf(log)).toEqual([])
    expect(ofType(log, 'step/end').map(({ data }) => data.outcome)).toEqual([{ kind: 'error', error: failure }])
    expect(ofType(log, 'turn/end').map(({ data }) => data.reason)).toEqual([{ kind: 'error', error: failure }])
    expect(told).toHaveLength(1)
  })

  test('[stream-032] what a hook around the stream throws is no failure of the request: nobody is asked to retry', async () => {
    const model = scripted(() => text('never all of it', { deltas: 3 }), { retry: { mode: 'always' } })
    await using started = await startAgent({ model })
    let asked = 0
    started.agent.on('agent/request-error', () => {
      asked += 1
      return { kind: 'retry' }
    })
    started.agent.on('llm/stream', async function* (_, next) {
      for await (const chunk of next()) {
        yield chunk
        throw new Error('the wrapper broke')
      }
    })
    const { reason } = await started.agent.run('hi')
    expect(reason).toEqual({ kind: 'error', error: { code: 'UNKNOWN', message: 'the wrapper broke' } })
    expect(asked).toBe(0)
    expect(model.requests).toHaveLength(1)
    expect(chunksOf(await started.log())).toHaveLength(1)
  })
})

describe('a cancel while the model speaks', () => {
  /** Runs a turn whose model says `parts` and then nothing, and cancels when all of them are logged. */
  async function cut(started: StartedAgent, logged: number): Promise<readonly SessionEvent[]> {
    let seen = 0
    started.agent.on('session/event', ({ type }) => {
      if (type !== 'assistant/chunk') return
      seen += 1
      if (seen === logged) void started.agent.cancel({ kind: 'user' })
    })
    const { reason } = await started.agent.run('hi')
    expect(reason).toEqual({ kind: 'aborted', cause: { kind: 'user' } })
    return started.log()
  }
  const saysThenHangs = (...parts: readonly Part[]) => startAgent({ model: scripted([[...parts, hangs()]]) })
  const open = (blockType: string, ...deltas: readonly StreamChunk[]) =>
    chunks([{ type: 'block-start', index: 0, blockType }, ...deltas])

  test('[stream-026] keeps what could be read as an interrupted answer, sources and all', async () => {
    await using started = await saysThenHangs(open('text', { type: 'text-delta', index: 0, text: 'partial ' }))
    const log = await cut(started, 2)
    expect(typesOf(log).slice(-5)).toEqual([
      'assistant/chunk*',
      'turn/cancel',
      'assistant/message',
      'step/end',
      'turn/end',
    ])
    const [answer] = answersOf(log)
    expect(answer?.data).toMatchObject({ interrupted: true, calls: [], finish: { kind: 'aborted' } })
    expect(answer?.data.message.content).toEqual([{ type: 'text', text: 'partial ' }])
    expect(answer?.sourceEventSeqs).toEqual(ofType(log, 'assistant/chunk').map(({ seq }) => seq))
    expect(ofType(log, 'step/end')[0]?.data.outcome).toEqual({ kind: 'aborted' })
    expect(started.agent.session.messages().at(-1)).toEqual(answer?.data.message)
  })

  test('[stream-027] keeps what was only thought', async () => {
    await using started = await saysThenHangs(open('reasoning', { type: 'reasoning-delta', index: 0, text: 'hm' }))
    const [answer] = answersOf(await cut(started, 2))
    expect(answer?.data.interrupted).toBe(true)
    expect(answer?.data.message.content).toEqual([{ type: 'reasoning', text: 'hm' }])
  })

  test('keeps the text and not the call beside it', async () => {
    await using started = await saysThenHangs(text('I will '), toolCall('echo', {}))
    const log = await cut(started, 6)
    expect(answersOf(log)[0]?.data.message.content).toEqual([{ type: 'text', text: 'I will ' }])
    expect(ofType(log, 'tool/call')).toEqual([])
  })

  test.each<[string, Part, number]>([
    ['a block that only began', open('text'), 1],
    ['blank text', open('text', { type: 'text-delta', index: 0, text: ' \n' }), 2],
    ['a call', toolCall('echo', {}), 3],
  ])('[stream-029] leaves no answer where nothing could be read: %s', async (_, part, logged) => {
    await using started = await saysThenHangs(part)
    const log = await cut(started, logged)
    expect(answersOf(log)).toEqual([])
    expect(typesOf(log).slice(-3)).toEqual(['turn/cancel', 'step/end', 'turn/end'])
  })

  test('[stream-030] what the model says after it is not logged, however it ends', async () => {
    const late: ModelAdapter = {
      provider: 'late',
      model: 'late',
      async *stream(_, { signal }) {
        yield { type: 'block-start', index: 0, blockType: 'text' }
        yield { type: 'text-delta', index: 0, text: 'before' }
        await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
        yield { type: 'text-delta', index: 0, text: ' after' }
        yield { type: 'finish', reason: { kind: 'aborted', failure: { code: 'ABORTED', message: 'gone' } } }
      },
    }
    await using started = await startAgent({ model: late })
    const log = await cut(started, 2)
    expect(chunksOf(log).slice(1)).toEqual([{ type: 'text-delta', index: 0, text: 'before' }])
    expect(answersOf(log)[0]?.data.message.content).toEqual([{ type: 'text', text: 'before' }])
  })

  test('[stream-031] the interrupted answer says what was spent, and has nothing for a replay', async () => {
    await using started = await saysThenHangs(text('part'), usage(spent))
    const [answer] = answersOf(await cut(started, 4))
    expect(answer?.data.usage).toEqual(spent)
    expect(answer?.data.message.source).toEqual({ kind: 'model', provider: 'scripted', model: 'scripted' })
  })

  test('given when the model has just finished comes in time: the answer is interrupted, its calls are dropped', async () => {
    const end: StreamChunk = { type: 'finish', reason: { kind: 'tool-calls' }, replayState: { response: { id: 'r' } } }
    const model = scripted([[text('I will '), toolCall('echo', {}), chunks([end])]])
    await using started = await startAgent({ model, tools: [echo] })
    const log = await cut(started, 7)
    expect(chunksOf(log).at(-1)).toEqual(end)
    expect(answersOf(log)).toMatchObject([{ data: { interrupted: true, finish: { kind: 'aborted' }, calls: [] } }])
    expect(answersOf(log)[0]?.data.message).toMatchObject({
      content: [{ type: 'text', text: 'I will ' }],
      source: { kind: 'model', provider: 'scripted', model: 'scripted' },
    })
    expect(answersOf(log)[0]?.data.message.source).not.toHaveProperty('replayState')
  })
})
