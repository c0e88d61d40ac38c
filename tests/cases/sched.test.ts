/** How the calls of one answer share a step: which run together, which alone, and what the log says of each. */
import { describe, expect, test } from 'vitest'
import type { SessionEvent } from '../../src/log/events.ts'
import { scripted, text, toolCall } from '../../src/services/adapters/scripted.ts'
import { InvalidOption } from '../../src/services/errors.ts'
import type { ToolContext } from '../../src/services/tools/contract.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, settle, startAgent } from '../kit/agents.ts'

/** A tool whose bodies each wait until their call is released. */
function blocking(
  mode: 'parallel' | 'exclusive' | (() => 'parallel' | 'exclusive') = 'parallel',
  first: (context: ToolContext) => void = () => {},
) {
  const begun: string[] = []
  const releases = new Map<string, () => void>()
  const look = tool({
    name: 'look',
    description: 'Looks until it is told what it saw',
    parameters: { type: 'object' },
    repeatable: true,
    mode,
    async execute(_, context) {
      begun.push(context.callId)
      first(context)
      await new Promise<void>((resolve) => releases.set(context.callId, resolve))
      return `seen by ${context.callId}`
    },
  })
  return {
    look,
    begun,
    /** Resolves when exactly that many bodies have begun, and no more of them do. */
    async hasBegun(count: number) {
      while (begun.length < count) await settle(1)
      await settle()
      expect(begun).toHaveLength(count)
    },
    release: (...callIds: readonly string[]) => {
      for (const callId of callIds) releases.get(callId)?.()
    },
  }
}

const ids = (count: number) => Array.from({ length: count }, (_, i) => `c${i + 1}`)
const asks = (count: number) => ids(count).map((id) => toolCall('look', {}, { id }))
const asksThenSays = (count: number) => scripted([asks(count), 'done'])

const callIdOf = (event: SessionEvent): string | undefined => {
  if (event.type === 'tool/result') return event.data.message.source.callId
  return event.type.startsWith('tool/') && 'callId' in event.data ? event.data.callId : undefined
}
/** The events of tools, as 'call c1'. */
const toolStory = (log: readonly SessionEvent[]): readonly string[] =>
  log.filter((event) => callIdOf(event)).map((event) => `${event.type.slice('tool/'.length)} ${callIdOf(event)}`)
const errorsOf = (log: readonly SessionEvent[]) =>
  ofType(log, 'tool/result').map((event) => [callIdOf(event), event.data.error?.code])
const reasonOf = (log: readonly SessionEvent[]) => ofType(log, 'turn/end').at(-1)?.data.reason
const entered = (log: readonly SessionEvent[]) =>
  ofType(log, 'user/message').map(({ data }) => (data.content[0] as { text: string }).text)

describe('calls that may share the step', () => {
  test('[sched-001] all run at the same time', async () => {
    const { look, begun, hasBegun, release } = blocking()
    await using started = await startAgent({ model: asksThenSays(3), tools: [look] })
    const turn = started.agent.run('go')
    await hasBegun(3)
    expect(begun).toEqual(['c1', 'c2', 'c3'])
    expect(ofType(await started.log(), 'tool/result')).toEqual([])
    release(...begun)
    expect((await turn).reason).toEqual({ kind: 'completed' })
  })

  test('[sched-004] the next one begins when a place gets free, not when all are', async () => {
    const { look, begun, hasBegun, release } = blocking()
    await using started = await startAgent({ model: asksThenSays(4), tools: [look], maxParallelToolCalls: 2 })
    const turn = started.agent.run('go')
    await hasBegun(2)
    release('c1')
    await hasBegun(3)
    expect(begun).toEqual(['c1', 'c2', 'c3'])
    expect(toolStory(await started.log())).toEqual([
      'call c1',
      'call c2',
      'dispatch c1',
      'dispatch c2',
      'result c1',
      'call c3',
      'dispatch c3',
    ])
    release('c2', 'c3')
    await hasBegun(4)
    release('c4')
    await turn
  })

  test('[sched-005] with room for one they take turns', async () => {
    const { look, begun, hasBegun, release } = blocking()
    await using started = await startAgent({ model: asksThenSays(2), tools: [look], maxParallelToolCalls: 1 })
    const turn = started.agent.run('go')
    await hasBegun(1)
    release('c1')
    await hasBegun(2)
    release('c2')
    await turn
    expect(begun).toEqual(['c1', 'c2'])
    expect(toolStory(await started.log()).slice(0, 4)).toEqual(['call c1', 'dispatch c1', 'result c1', 'call c2'])
  })

  test('[sched-006] ten at most, unless told otherwise', async () => {
    const { look, begun, hasBegun, release } = blocking()
    await using started = await startAgent({ model: asksThenSays(11), tools: [look] })
    const turn = started.agent.run('go')
    await hasBegun(10)
    expect(begun).toEqual(ids(10))
    expect(toolStory(await started.log())).not.toContain('call c11')
    release('c7')
    await hasBegun(11)
    release(...begun)
    await turn
  })

  test.each([0, -1, 1.5, Number.NaN])('[sched-007] a room of %d is refused before anything opens', async (cap) => {
    const opening = startAgent({ maxParallelToolCalls: cap })
    await expect(opening).rejects.toThrow(InvalidOption)
    await expect(opening).rejects.toMatchObject({ option: 'maxParallelToolCalls' })
  })

  // Replaced: a result does not wait for its siblings, so that one that hangs cannot lose those of the others.
  test('[sched-009] a result is recorded when its tool settles, also before that of an earlier call', async () => {
    const { look, hasBegun, release } = blocking()
    await using started = await startAgent({ model: asksThenSays(2), tools: [look] })
    const turn = started.agent.run('go')
    await hasBegun(2)
    release('c2')
    await settle()
    expect(toolStory(await started.log()).slice(4)).toEqual(['result c2'])
    release('c1')
    await turn
    expect(toolStory(await started.log()).slice(4)).toEqual(['result c2', 'result c1'])
  })

  test('[sched-010] the model reads the results in the order of its calls, whatever order they came in', async () => {
    const { look, hasBegun, release } = blocking()
    const model = asksThenSays(2)
    await using started = await startAgent({ model, tools: [look] })
    const turn = started.agent.run('go')
    await hasBegun(2)
    release('c2')
    await settle()
    release('c1')
    await turn
    const [, assistant, ...results] = model.requests[1]?.messages ?? []
    expect(assistant?.content.map((block) => 'id' in block && block.id)).toEqual(['c1', 'c2'])
    expect(results.map(({ content }) => content)).toEqual(
      ['c1', 'c2'].map((id) => [
        { type: 'tool-result', toolCallId: id, content: [{ type: 'text', text: `seen by ${id}` }] },
      ]),
    )
  })

  // Replaced: whether a call may run beside others is asked once, when the answer is recorded.
  test('[sched-016] a classifier that changes its mind changes no answer that was scheduled', async () => {
    let alone = false
    let asked = 0
    const { look, begun, hasBegun, release } = blocking(() => {
      asked += 1
      return alone ? 'exclusive' : 'parallel'
    })
    const model = scripted([asks(4), toolCall('look', {}, { id: 'c5' }), 'done'])
    await using started = await startAgent({ model, tools: [look], maxParallelToolCalls: 2 })
    started.agent.on('session/event', (event) => {
      alone ||= event.type === 'tool/result'
    })
    const turn = started.agent.run('go')
    await hasBegun(2)
    release('c1')
    await hasBegun(3)
    expect([...begun, asked]).toEqual(['c1', 'c2', 'c3', 4])
    release('c2', 'c3')
    await hasBegun(4)
    release('c4')
    await hasBegun(5)
    release('c5')
    await turn
    const modes = ofType(await started.log(), 'assistant/message').map(({ data }) => data.calls.map(({ mode }) => mode))
    expect(modes).toEqual([['parallel', 'parallel', 'parallel', 'parallel'], ['exclusive'], []])
  })

  test('[sched-025] each result names its own call as its source, and nothing else', async () => {
    const { look, hasBegun, release } = blocking()
    await using started = await startAgent({ model: asksThenSays(2), tools: [look] })
    const turn = started.agent.run('go')
    await hasBegun(2)
    release('c2', 'c1')
    await turn
    const log = await started.log()
    const seqs = new Map(ofType(log, 'tool/call').map(({ seq, data }) => [data.callId, seq]))
    const results = ofType(log, 'tool/result')
    expect(results).toHaveLength(2)
    for (const result of results) expect(result.sourceEventSeqs).toEqual([seqs.get(callIdOf(result) ?? '')])
  })
})

describe('calls that must be alone', () => {
  test('[sched-003] a tool that says nothing of it runs its calls one after another', async () => {
    const running = { now: 0, most: 0 }
    const look = tool({
      name: 'look',
      description: 'Looks',
      parameters: { type: 'object' },
      async execute() {
        running.most = Math.max(running.most, ++running.now)
        await settle(1)
        running.now -= 1
      },
    })
    await using started = await startAgent({ model: asksThenSays(2), tools: [look] })
    await started.agent.run('go')
    expect(running.most).toBe(1)
    expect(toolStory(await started.log())).toEqual([
      'call c1',
      'dispatch c1',
      'result c1',
      'call c2',
      'dispatch c2',
      'result c2',
    ])
  })

  test('an exclusive call waits for those before it, and those after it wait for it', async () => {
    const { look, begun, hasBegun, release } = blocking()
    const alone = tool({
      name: 'alone',
      description: 'Runs alone',
      parameters: { type: 'object' },
      execute: (_, { callId }) => {
        begun.push(callId)
      },
    })
    const call = (name: string, id: string) => toolCall(name, {}, { id })
    const model = scripted([[call('look', 'c1'), call('alone', 'c2'), call('look', 'c3')], 'done'])
    await using started = await startAgent({ model, tools: [look, alone] })
    const turn = started.agent.run('go')
    await hasBegun(1)
    release('c1')
    await hasBegun(3)
    release('c3')
    await turn
    expect(toolStory(await started.log()).filter((line) => !line.startsWith('dispatch'))).toEqual([
      'call c1',
      'result c1',
      'call c2',
      'result c2',
      'call c3',
      'result c3',
    ])
  })

  test('[sched-023] only the exact word makes a call parallel; whatever else a classifier does, it runs alone', async () => {
    const answers: Readonly<Record<string, () => unknown>> = {
      yes: () => 'parallel',
      throws: () => {
        throw new Error('no idea')
      },
      one: () => 1,
      word: () => 'yes',
      truth: () => true,
      nothing: () => undefined,
      later: () => Promise.resolve('parallel'),
      schema: () => 'parallel',
      unparsable: () => 'parallel',
    }
    const tools = Object.entries(answers).map(([name, mode]) =>
      tool({
        name,
        description: name,
        parameters: { type: 'object', properties: { n: { type: 'number' } } },
        mode: mode as () => 'parallel',
        execute: () => 'ok',
      }),
    )
    const calls = [...Object.keys(answers), 'unknown'].map((name) =>
      toolCall(name, name === 'schema' ? { n: 'three' } : name === 'unparsable' ? '{' : {}),
    )
    await using started = await startAgent({ model: scripted([calls, 'done']), tools })
    await started.agent.run('go')
    const [answer] = ofType(await started.log(), 'assistant/message')
    expect(answer?.data.calls.filter(({ mode }) => mode === 'parallel').map(({ name }) => name)).toEqual(['yes'])
    expect(answer?.data.calls).toHaveLength(10)
  })

  test('[sched-024] a classifier is given the arguments parsed', async () => {
    const seen: unknown[] = []
    const find = tool({
      name: 'find',
      description: 'Finds',
      parameters: { type: 'object' },
      mode(args) {
        seen.push(args)
        return 'parallel'
      },
      execute: () => 'found',
    })
    const model = scripted([toolCall('find', '{"kind":"read"}'), 'done'])
    await using started = await startAgent({ model, tools: [find] })
    await started.agent.run('go')
    expect(seen).toEqual([{ kind: 'read' }])
    expect(ofType(await started.log(), 'assistant/message')[0]?.data.calls[0]?.mode).toBe('parallel')
  })
})

describe('what tools add to the conversation', () => {
  const saysTwice = ({ callId, addContext }: ToolContext) => {
    addContext(`first of ${callId}`)
    addContext(`second of ${callId}`)
  }

  // Replaced: as results are, what comes with them is recorded in the order in which the tools settled.
  test('[sched-012] it enters in the order in which the tools settled', async () => {
    const { look, hasBegun, release } = blocking('parallel', ({ callId, addContext }) => addContext(`of ${callId}`))
    await using started = await startAgent({ model: asksThenSays(2), tools: [look] })
    const turn = started.agent.run('go')
    await hasBegun(2)
    release('c2')
    await settle()
    release('c1')
    await turn
    expect(entered(await started.log())).toEqual(['go', 'of c2', 'of c1'])
  })

  test('[sched-013] it enters with the next step, after every result, which stay beside the calls', async () => {
    const { look, hasBegun, release } = blocking('parallel', saysTwice)
    const model = asksThenSays(2)
    await using started = await startAgent({ model, tools: [look] })
    const turn = started.agent.run('go')
    await hasBegun(2)
    release('c1')
    await settle()
    release('c2')
    await turn
    const log = await started.log()
    const nextStep = ofType(log, 'step/start').find(({ data }) => data.step === 2)
    const added = ofType(log, 'user/message').slice(1)
    expect(added).toHaveLength(4)
    for (const result of ofType(log, 'tool/result')) expect(result.seq).toBeLessThan(nextStep?.seq ?? 0)
    expect(added.map(({ seq }) => seq)).toEqual([1, 2, 3, 4].map((n) => (nextStep?.seq ?? 0) + n))
    expect(model.requests[1]?.messages.map(({ role, source }) => `${role} ${source.kind}`)).toEqual([
      'user user',
      'assistant model',
      'user tool',
      'user tool',
      ...Array(4).fill('user user'),
    ])
  })

  test('[sched-014] each piece waits in a splice of its own, in the order it was said', async () => {
    const { look, hasBegun, release } = blocking('exclusive', saysTwice)
    await using started = await startAgent({ model: asksThenSays(1), tools: [look] })
    const turn = started.agent.run('go')
    await hasBegun(1)
    release('c1')
    await turn
    const log = await started.log()
    const result = ofType(log, 'tool/result')[0]?.seq ?? 0
    const inserts = log
      .slice(result + 1, result + 4)
      .map((event) => [
        event.type,
        event.type === 'agent/inbox/spliced' &&
          event.data.inserted.map((item) => (item.kind === 'message' ? item.message.content : item.callId)),
      ])
    expect(inserts).toEqual([
      ['agent/inbox/spliced', [[{ type: 'text', text: 'first of c1' }]]],
      ['agent/inbox/spliced', [[{ type: 'text', text: 'second of c1' }]]],
      ['agent/inbox/spliced', ['c1']],
    ])
    expect(entered(log)).toEqual(['go', 'first of c1', 'second of c1'])
  })
})

describe('a cancel', () => {
  test.each(['parallel', 'exclusive'] as const)(
    '[sched-018] given when the answer is seen leaves every %s call unrun and answered',
    async (mode) => {
      const { look, begun } = blocking(mode)
      const model = asksThenSays(2)
      await using started = await startAgent({ model, tools: [look] })
      started.agent.on('session/event', (event) => {
        if (event.type === 'assistant/message') void started.agent.cancel()
      })
      const { reason } = await started.agent.run('go')
      const log = await started.log()
      expect(reason).toEqual({ kind: 'aborted', cause: { kind: 'user' } })
      expect(begun).toEqual([])
      expect(ofType(log, 'tool/dispatch')).toEqual([])
      expect(ofType(log, 'tool/call').map(({ data }) => data.callId)).toEqual(['c1', 'c2'])
      expect(errorsOf(log)).toEqual([
        ['c1', 'ABORTED_BEFORE_DISPATCH'],
        ['c2', 'ABORTED_BEFORE_DISPATCH'],
      ])
      expect(model.requests).toHaveLength(1)
    },
  )

  test.each(['parallel', 'exclusive'] as const)(
    '[sched-019] given by the policy hook of the first %s call leaves all of them unrun and answered',
    async (mode) => {
      const { look, begun } = blocking(mode)
      await using started = await startAgent({ model: asksThenSays(2), tools: [look] })
      started.agent.on('tools/pre-execute', (call, next) => {
        if (call.callId === 'c1') void started.agent.cancel()
        return next()
      })
      await started.agent.run('go')
      const log = await started.log()
      expect(begun).toEqual([])
      expect(errorsOf(log)).toEqual([
        ['c1', 'ABORTED_BEFORE_DISPATCH'],
        ['c2', 'ABORTED_BEFORE_DISPATCH'],
      ])
      expect(ofType(log, 'tool/dispatch')).toEqual([])
    },
  )

  test('[sched-020] lets what runs settle, answers the rest at once, and parks what the tools added', async () => {
    const { look, begun, hasBegun, release } = blocking('parallel', ({ callId, addContext }) => {
      if (callId === 'c1') addContext('for later')
    })
    const model = scripted([asks(4), [text('again')]])
    await using started = await startAgent({ model, tools: [look], maxParallelToolCalls: 2 })
    const turn = started.agent.run('go')
    await hasBegun(2)
    const cancelled = started.agent.cancel()
    await settle()
    expect(toolStory(await started.log()).slice(4)).toEqual(['call c3', 'result c3', 'call c4', 'result c4'])
    expect(reasonOf(await started.log())).toBeUndefined()
    release('c1', 'c2')
    await cancelled
    const log = await started.log()
    expect(begun).toEqual(['c1', 'c2'])
    expect(errorsOf(log)).toEqual([
      ['c3', 'ABORTED_BEFORE_DISPATCH'],
      ['c4', 'ABORTED_BEFORE_DISPATCH'],
      ['c1', 'ABORTED'],
      ['c2', 'ABORTED'],
    ])
    expect((await turn).reason).toEqual({ kind: 'aborted', cause: { kind: 'user' } })
    expect(started.agent.inbox.nextStep).toMatchObject([
      { kind: 'message', message: { content: [{ text: 'for later' }] } },
    ])
    expect(model.requests).toHaveLength(1)
    await started.agent.run('again')
    expect(entered(await started.log())).toEqual(['go', 'for later', 'again'])
  })
})

test.each(['cancelled', 'concluded'] as const)(
  'no warning about repeated calls waits when a turn was %s',
  async (how) => {
    let cancel = (): void => {}
    const again = tool({
      name: 'again',
      description: 'Called again and again',
      parameters: { type: 'object' },
      execute(_, { concludeTurn }) {
        if (how === 'cancelled') cancel()
        else concludeTurn()
      },
    })
    const model = scripted([ids(3).map((id) => toolCall('again', {}, { id })), 'never'])
    await using started = await startAgent({ model, tools: [again] })
    cancel = () => void started.agent.cancel()
    await started.agent.run('go')
    expect(started.agent.inbox.nextStep).toEqual([])
    expect(model.requests).toHaveLength(1)
  },
)
