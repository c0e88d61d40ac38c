/** What a turn leaves in the log: its boundaries, its steps, its messages, in order. */
import { describe, expect, test } from 'vitest'
import { deriveMessages } from '../../src/log/derive.ts'
import type { SessionEvent } from '../../src/log/events.ts'
import { fails, scripted, text, toolCall } from '../../src/services/adapters/scripted.ts'
import type { ModelAdapter } from '../../src/services/llm/adapter.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, startAgent, typesOf } from '../kit/agents.ts'
import { message, reasons, statusesOf, steps, toldTexts, turnOf, userTexts } from '../kit/conversation.ts'

const echo = tool({
  name: 'echo',
  description: 'Says it back',
  parameters: { type: 'object', properties: { text: { type: 'string' } } },
  execute: (args) => (args as { text?: string }).text ?? 'nothing',
})
const callsEcho = toolCall('echo', { text: 'ping' }, { id: 'c1' })
const isBoundary = ({ type }: SessionEvent) => type.startsWith('turn/') || type.startsWith('step/')

describe('one turn', () => {
  test('[lifecycle-002] a step lies inside its turn', async () => {
    await using started = await startAgent({ model: scripted(['hello']) })
    const { agent, log } = started
    const seen: string[] = []
    agent.on('session/event', (event) => {
      if (isBoundary(event)) seen.push(event.type)
    })
    await agent.run('hi')
    expect(seen).toEqual(['turn/start', 'step/start', 'step/end', 'turn/end'])
    expect(typesOf((await log()).filter(isBoundary))).toEqual(seen)
  })

  test('[lifecycle-003] a tool round trip is one turn of two steps, its result travelling through next-step', async () => {
    const model = scripted([[text('let me see'), callsEcho], 'done'])
    await using started = await startAgent({ model, tools: [echo] })
    const { agent } = started
    const result = await agent.run('use the tool')
    expect(result).toMatchObject({ turn: 1, reason: { kind: 'completed' }, text: 'done', steps: 2 })
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
      'assistant/message',
      'tool/call',
      'tool/dispatch',
      'tool/result',
      'agent/inbox/spliced',
      'step/end',
      'agent/inbox/spliced',
      'step/start',
      'assistant/chunk*',
      'assistant/message',
      'step/end',
      'turn/end',
    ])
    expect(ofType(log, 'request/header').map(({ data }) => data.reason)).toEqual(['initial'])
    expect(ofType(log, 'tool/call')[0]?.data).toEqual({
      turn: 1,
      step: 1,
      callId: 'c1',
      name: 'echo',
      arguments: '{"text":"ping"}',
    })
    const answer = ofType(log, 'tool/result')[0]?.data
    expect(answer?.message.content).toEqual([
      { type: 'tool-result', toolCallId: 'c1', content: [{ type: 'text', text: 'ping' }] },
    ])
    expect(ofType(log, 'step/end').map(({ data }) => data.outcome.kind)).toEqual(['tool-calls', 'completed'])
    expect(model.requests).toHaveLength(2)
    expect(model.requests[1]?.messages.at(-1)).toEqual(answer?.message)
  })

  test('[lifecycle-004] between a batch of tools and the next answer only the claim and the step are recorded', async () => {
    await using started = await startAgent({ model: scripted([callsEcho, 'done']), tools: [echo] })
    await started.agent.run('go')
    const log = await started.log()
    const closed = log.findIndex(({ type }) => type === 'step/end')
    const answered = log.findIndex(({ type, seq }) => type === 'assistant/chunk' && seq > closed)
    const [claim, ...rest] = log.slice(closed + 1, answered)
    expect(claim).toMatchObject({
      type: 'agent/inbox/spliced',
      data: { queue: 'next-step', start: 0, deleteCount: 1, inserted: [], outcome: 'claimed' },
    })
    expect(rest.map(({ type, data }) => ({ type, data }))).toEqual([{ type: 'step/start', data: { turn: 1, step: 2 } }])
  })

  test('[lifecycle-008] a message enters once its step is open, before the request is made', async () => {
    await using started = await startAgent()
    await started.agent.run('hi')
    const log = await started.log()
    const seqOf = (type: string) => log.find((event) => event.type === type)?.seq ?? Number.NaN
    const order = ['step/start', 'user/message', 'request/header', 'assistant/chunk'].map(seqOf)
    expect(order).toEqual([...order].sort((a, b) => a - b))
    expect(order.every(Number.isInteger)).toBe(true)
  })

  test('[lifecycle-020] a turn of two steps opens and closes each, and the message enters the first alone', async () => {
    const weather = tool({
      name: 'get_weather',
      description: 'x',
      parameters: { type: 'object' },
      execute: () => 'sun',
    })
    await using started = await startAgent({
      model: scripted([toolCall('get_weather', {}), 'It is sunny']),
      tools: [weather],
    })
    await started.agent.run('weather?')
    const log = await started.log()
    expect(log.filter(isBoundary).map(({ type }) => type)).toEqual([
      'turn/start',
      'step/start',
      'step/end',
      'step/start',
      'step/end',
      'turn/end',
    ])
    const second = ofType(log, 'step/start')[1]?.seq ?? 0
    expect(ofType(log, 'user/message').map(({ seq }) => seq < second)).toEqual([true])
  })
})

describe('several turns', () => {
  test('[lifecycle-005] whatever happens, what was opened is closed, and steps lie in their turns', async () => {
    await using started = await startAgent({
      model: scripted(['plain', callsEcho, 'with a tool', fails('QUOTA'), 'again']),
      tools: [echo],
      hooks: {
        'agent/pre-step': ({ messages }, next) =>
          messages.some(({ id }) => id === 'bad') ? { kind: 'reject', reason: 'no' } : next(),
      },
    })
    const kinds: string[] = []
    for (const input of ['one', 'two', 'three', message('bad'), 'four']) {
      kinds.push((await started.agent.run(input)).reason.kind)
    }
    expect(kinds).toEqual(['completed', 'completed', 'error', 'blocked', 'completed'])
    const log = await started.log()
    const nesting: string[] = []
    for (const event of log.filter(isBoundary)) {
      const [what, edge] = event.type.split('/')
      if (edge === 'start') nesting.push(`${what}`)
      else expect(nesting.pop()).toBe(what)
      expect(nesting.join('>')).toMatch(/^(turn(>step)?)?$/)
    }
    expect(nesting).toEqual([])
    expect(ofType(log, 'turn/start')).toHaveLength(5)
    expect(steps(log)).toEqual(['1.1', '2.1', '2.2', '3.1', '5.1'])
  })

  test('[lifecycle-006] steps are counted from 1 in each turn', async () => {
    await using started = await startAgent({ model: scripted([callsEcho, 'done', 'hello']), tools: [echo] })
    await started.agent.run('use the tool')
    await started.agent.run('hi')
    const log = await started.log()
    expect(steps(log)).toEqual(['1.1', '1.2', '2.1'])
    expect(ofType(log, 'turn/start').map(({ data }) => data.turn)).toEqual([1, 2])
    expect(ofType(log, 'turn/end').map(({ data }) => data.turn)).toEqual([1, 2])
  })

  test.each([1, 2, 3, 4, 5, 6])('[lifecycle-009] %i followups at once are as many turns, in one run', async (n) => {
    await using started = await startAgent()
    const statuses = statusesOf(started.agent)
    const sent = Array.from({ length: n }, (_, i) => `message ${i + 1}`)
    for (const input of sent) started.agent.followup(input)
    await started.agent.whenIdle()
    const log = await started.log()
    const numbers = sent.map((_, i) => i + 1)
    expect(ofType(log, 'turn/start').map(({ data }) => data.turn)).toEqual(numbers)
    expect(ofType(log, 'turn/end').map(({ data }) => data.turn)).toEqual(numbers)
    expect(numbers.map((turn) => userTexts(turnOf(log, turn)))).toEqual(sent.map((input) => [input]))
    expect(statuses).toEqual(['running', 'idle'])
  })

  test('[lifecycle-011] what is sent while an answer streams is queued in this turn and enters the next', async () => {
    const model = scripted(['first', 'second'])
    await using started = await startAgent({ model })
    const { agent } = started
    const stop = agent.on('session/event', ({ type }) => {
      if (type !== 'assistant/chunk') return
      stop()
      queueMicrotask(() => agent.followup('later'))
    })
    agent.followup('now')
    await agent.whenIdle()
    const log = await started.log()
    expect(ofType(log, 'turn/start').map(({ data }) => data.turn)).toEqual([1, 2])
    expect(userTexts(log)).toEqual(['now', 'later'])
    expect(toldTexts(model.requests[1])).toEqual(['now', 'later'])
    const inserts = ofType(turnOf(log, 1), 'agent/inbox/spliced').filter(({ data }) => data.inserted.length > 0)
    expect(inserts).toHaveLength(1)
  })

  test('[lifecycle-012] what the adapter sends while it serves a request enters the following turn', async () => {
    let serve = (): void => {}
    const inner = scripted(() => 'ok')
    const model: ModelAdapter = {
      ...inner,
      stream(request, options) {
        serve()
        return inner.stream(request, options)
      },
    }
    await using started = await startAgent({ model })
    serve = () => {
      serve = () => {}
      started.agent.followup('from the adapter')
    }
    started.agent.followup('from outside')
    await started.agent.whenIdle()
    const log = await started.log()
    expect([1, 2].map((turn) => userTexts(turnOf(log, turn)))).toEqual([['from outside'], ['from the adapter']])
    expect(ofType(log, 'turn/start')).toHaveLength(2)
  })

  test('[lifecycle-013] messages a microtask apart keep their own source', async () => {
    await using started = await startAgent({ model: scripted(['one', 'two']) })
    started.agent.followup(message('a'))
    await Promise.resolve()
    started.agent.followup(message('b', 'b', { kind: 'plugin', plugin: 'test' }))
    await started.agent.whenIdle()
    const log = await started.log()
    expect(ofType(log, 'user/message').map(({ data }) => data.source)).toEqual([
      { kind: 'user' },
      { kind: 'plugin', plugin: 'test' },
    ])
    expect(steps(log)).toEqual(['1.1', '2.1'])
  })

  test.each([0b10110, 0b01001, 0b11111, 0b00010])(
    '[lifecycle-014] sends that wait for rest and sends that do not (%i) are one turn each, in order',
    async (waits) => {
      await using started = await startAgent()
      const sent = Array.from({ length: 6 }, (_, i) => `message ${i + 1}`)
      for (const [i, input] of sent.entries()) {
        started.agent.followup(input)
        if ((waits >> i) & 1) await started.agent.whenIdle()
      }
      await started.agent.whenIdle()
      const log = await started.log()
      expect(ofType(log, 'turn/start').map(({ data }) => data.turn)).toEqual([1, 2, 3, 4, 5, 6])
      expect(sent.map((_, i) => userTexts(turnOf(log, i + 1)))).toEqual(sent.map((input) => [input]))
    },
  )
})

describe('the history', () => {
  test('[lifecycle-015] a finished log opened again has the same history, and nothing is written', async () => {
    const first = await startAgent({ model: scripted([callsEcho, 'done']), tools: [echo] })
    await first.agent.run('use the tool')
    const before = await first.log()
    const messages = first.agent.session.messages()
    await first[Symbol.asyncDispose]()

    await using again = await startAgent({ store: first.store })
    expect(again.agent.session.messages()).toEqual(messages)
    expect(deriveMessages(before)).toEqual(messages)
    expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant'])
    expect(await again.log()).toEqual(before)
  })

  test('[lifecycle-017] a message is the same object of the same shape in the inbox and in the conversation', async () => {
    const steering = tool({
      name: 'steering',
      description: 'Steers',
      parameters: { type: 'object' },
      execute: (_, context) => {
        context.steer(message('s', 'mind this', { kind: 'plugin', plugin: 'guide' }))
        return 'steered'
      },
    })
    await using started = await startAgent({ model: scripted([toolCall('steering', {}), 'done']), tools: [steering] })
    await started.agent.run('go')
    const log = await started.log()
    const inserted = ofType(log, 'agent/inbox/spliced').flatMap(({ data }) =>
      data.inserted.flatMap((item) => (item.kind === 'message' ? [{ queue: data.queue, message: item.message }] : [])),
    )
    expect(inserted.map(({ queue }) => queue)).toEqual(['next-turn', 'next-step'])
    for (const { message: one } of inserted)
      expect(Object.keys(one).sort()).toEqual(['content', 'id', 'role', 'source'])
    expect(ofType(log, 'user/message').map(({ data }) => data)).toEqual(inserted.map(({ message: one }) => one))
    expect(inserted[1]?.message.source).toEqual({ kind: 'plugin', plugin: 'guide' })
  })

  test('[lifecycle-019] every request says what the log up to it says, and the system text is no message', async () => {
    const heads: number[] = []
    const inner = scripted([callsEcho, 'done', 'hello'])
    const model: ModelAdapter = {
      ...inner,
      stream(request, options) {
        heads.push(agentOf().session.head)
        return inner.stream(request, options)
      },
    }
    await using started = await startAgent({ model, tools: [echo], system: 'Be brief.' })
    const agentOf = () => started.agent
    await started.agent.run('use the tool')
    await started.agent.run('hi')
    const log = await started.log()
    expect(inner.requests).toHaveLength(3)
    for (const [i, request] of inner.requests.entries()) {
      expect(request.messages).toEqual(deriveMessages(log.slice(0, heads[i])))
      expect(request.system).toBe('Be brief.')
      expect(JSON.stringify(request.messages)).not.toContain('Be brief.')
    }
    expect(reasons(log)).toEqual([{ kind: 'completed' }, { kind: 'completed' }])
  })
})
