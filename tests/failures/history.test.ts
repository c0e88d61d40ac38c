/**
 * Known failures of histories: a provider refuses a conversation in which a call has no result or a result no call,
 * and a session that holds one is lost. Each test is the input that broke somebody, and what happens here.
 */
import { describe, expect, test } from 'vitest'
import { createAgent } from '../../src/agent.ts'
import type { SessionEvent } from '../../src/log/events.ts'
import { checkInvariants } from '../../src/log/invariants.ts'
import type { AssistantMessage, Message, UserMessage } from '../../src/log/messages.ts'
import type { LogStore, Ownership } from '../../src/log/store.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { verify } from '../../src/machines/verify.ts'
import type { Dialect } from '../../src/services/adapters/chat-completions/dialect.ts'
import { deepseek } from '../../src/services/adapters/deepseek.ts'
import { openaiCompatible } from '../../src/services/adapters/openai-compatible.ts'
import { gate, pause, reasoning, scripted, text, toolCall } from '../../src/services/adapters/scripted.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, settle, startAgent, stored, unhurriedHooks } from '../kit/agents.ts'
import { ask, requestTo } from '../kit/ask-adapter.ts'
import * as k from '../kit/logs.ts'
import { expectPaired, pairs } from '../kit/pairing.ts'
import { answer, wireServer } from '../kit/wire-server.ts'

const anything = { type: 'object' } as const
const look = tool({ name: 'look', description: 'Looks', parameters: anything, mode: 'parallel', execute: () => 'seen' })

/** A tool whose calls with `{ hang: true }` end only with the process. */
function sometimesHangs(heedsSignal = false) {
  let begin = (): void => {}
  const begun = new Promise<void>((resolve) => {
    begin = resolve
  })
  const made = tool({
    name: 'work',
    description: 'Works',
    parameters: anything,
    mode: 'parallel',
    execute: (args, { callId, signal }) => {
      if (!(args as { hang?: boolean }).hang) return `done ${callId}`
      begin()
      return new Promise((_, reject) => {
        if (heedsSignal) signal.addEventListener('abort', () => reject(new Error('stopped')), { once: true })
      })
    },
  })
  return { tool: made, begun }
}

const codes = (log: readonly SessionEvent[]) =>
  Object.fromEntries(ofType(log, 'tool/result').map(({ data }) => [data.message.source.callId, data.error?.code]))

describe('every call has its result', () => {
  test('[HIS-01] a crash between call and result leaves a conversation that goes on', async () => {
    const store = memoryStore()
    const work = sometimesHangs()
    const dead = await startAgent({
      store,
      tools: [work.tool],
      model: scripted([toolCall('work', { hang: true }, { id: 'a' })]),
    })
    dead.agent.followup('go')
    await work.begun
    const model = scripted(['I see', 'hello to you'])
    await using again = await startAgent({ store, steal: true, tools: [work.tool], model })
    await again.agent.whenIdle()
    expect((await again.agent.run('hello')).text).toBe('hello to you')
    expect(codes(await again.log())).toEqual({ a: 'TOOL_OUTCOME_UNKNOWN' })
    for (const { messages } of model.requests) expectPaired(messages)
    expect(pairs(model.requests[1]?.messages ?? [])).toEqual([{ calls: ['a'], results: ['a'] }])
  })

  test('[HIS-01] so does one at any other place of a turn with tools, and a second crash right after', async () => {
    const { store: whole, heads } = watched(memoryStore())
    const script = () => [[toolCall('look', {}, { id: 'a' }), toolCall('look', { n: 2 }, { id: 'b' })], 'done']
    // Whatever a turn records at once is one append, whole or lost; unhurried, it may be cut after each of its batches.
    await using first = await startAgent({
      store: whole,
      tools: [look],
      model: scripted(script()),
      hooks: unhurriedHooks,
    })
    await first.agent.run('go')
    const log = await first.log()
    expect(heads.length).toBeGreaterThan(8)
    for (const length of heads) {
      const store = await storeWith(log.slice(0, length))
      for (let opening = 0; opening < 2; opening++) {
        const crashing = await createAgent({
          model: scripted(script()),
          tools: [look],
          store,
          sessionId: 's',
          steal: true,
        })
        await settle(opening)
        expect(crashing.status).not.toBe('failed')
      }
      const model = scripted(() => 'done')
      const last = await createAgent({ model, tools: [look], store, sessionId: 's', steal: true })
      await last.whenIdle()
      await last.run('and now?')
      expectPaired(last.session.messages())
      await last.close()
      expect(verify(await stored(store, 's')), `cut at ${length}`).toMatchObject({ ok: true, state: 'idle' })
    }
  })

  test('[HIS-02] a cancel while a tool runs keeps both the answer and its results', async () => {
    const work = sometimesHangs(true)
    const model = scripted([
      [text('on it'), toolCall('work', { hang: true }, { id: 'a' }), toolCall('work', {}, { id: 'b' })],
      'carried on',
    ])
    await using started = await startAgent({ tools: [work.tool], model })
    started.agent.followup('go')
    await work.begun
    await settle()
    await started.agent.cancel()
    await started.agent.run('go on')
    expect(pairs(model.requests[1]?.messages ?? [])).toEqual([{ calls: ['a', 'b'], results: ['a', 'b'] }])
    expect(codes(await started.log())).toMatchObject({ b: undefined })
  })

  test('[HIS-05] of three calls the second of which cannot run, each has exactly one result, in order', async () => {
    const strict = tool({
      name: 'strict',
      description: 'Counts',
      parameters: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] },
      mode: 'exclusive',
      execute: () => 'counted',
    })
    const model = scripted([
      [
        toolCall('look', {}, { id: 'a' }),
        toolCall('strict', { n: 'many' }, { id: 'b' }),
        toolCall('strict', '{"n":', { id: 'c' }),
        toolCall('nowhere', {}, { id: 'd' }),
        toolCall('strict', { n: 1 }, { id: 'e' }),
      ],
      'ok',
    ])
    await using started = await startAgent({ tools: [look, strict], model })
    await started.agent.run('go')
    const ids = ['a', 'b', 'c', 'd', 'e']
    expect(pairs(model.requests[1]?.messages ?? [])).toEqual([{ calls: ids, results: ids }])
    expect(codes(await started.log())).toEqual({
      a: undefined,
      b: 'INVALID_ARGS',
      c: 'INVALID_ARGS',
      d: 'UNKNOWN_TOOL',
      e: undefined,
    })
  })

  test('[HIS-05] an answer that gives one id to two calls, or an id of an earlier turn, is told apart', async () => {
    const model = scripted([
      [toolCall('look', { n: 1 }, { id: 'same' }), toolCall('look', { n: 2 }, { id: 'same' })],
      [toolCall('look', { n: 3 }, { id: 'same' })],
      'ok',
    ])
    await using started = await startAgent({ tools: [look], model })
    await started.agent.run('go')
    const { messages = [] } = model.requests[2] ?? {}
    expectPaired(messages)
    expect(new Set(pairs(messages).flatMap(({ calls }) => calls)).size).toBe(3)
  })

  test('[HIS-06] a denied call has a result that says so, and the turn goes on', async () => {
    const asks = tool({
      name: 'asks',
      description: 'Asks',
      parameters: anything,
      needsApproval: true,
      execute: () => 'did',
    })
    const model = scripted([[toolCall('asks', {}, { id: 'a' }), toolCall('asks', { n: 2 }, { id: 'b' })], 'I see'])
    await using started = await startAgent({ tools: [asks], model })
    const turn = started.agent.run('go')
    for (const answer of ['deny', 'approve'] as const) {
      await started.agent.whenQuiet()
      const [pending] = started.agent.approvals()
      const { callId = '', argumentsDigest: digest = '' } = pending ?? {}
      await started.agent[answer](callId, { digest, ...(answer === 'deny' ? { reason: 'not today' } : {}) })
    }
    expect((await turn).reason).toEqual({ kind: 'completed' })
    const results = ofType(await started.log(), 'tool/result').map(({ data }) => JSON.stringify(data.message.content))
    expect(results).toEqual([expect.stringContaining('not today'), expect.stringContaining('did')])
    expectPaired(model.requests[1]?.messages ?? [])
  })

  test('[HIS-15] one stalled call does not lose what the others of its batch said', async () => {
    const store = memoryStore()
    const work = sometimesHangs()
    const calls = ['a', 'b', 'c'].map((id) => toolCall('work', id === 'b' ? { hang: true } : { id }, { id }))
    const dead = await startAgent({ store, tools: [work.tool], model: scripted([calls]) })
    dead.agent.followup('go')
    await work.begun
    await settle()
    await dead.agent.session.flush()
    expect(Object.keys(codes(await stored(store, 'session'))).sort()).toEqual(['a', 'c'])
    const model = scripted(['I see'])
    await using again = await startAgent({ store, steal: true, tools: [work.tool], model })
    await again.agent.whenIdle()
    expect(codes(await again.log())).toEqual({ a: undefined, b: 'TOOL_OUTCOME_UNKNOWN', c: undefined })
    expect(pairs(model.requests[0]?.messages ?? [])).toEqual([{ calls: ['a', 'b', 'c'], results: ['a', 'b', 'c'] }])
  })
})

describe('a compacted conversation', () => {
  /** Three turns with a tool each, and where their messages stand. */
  async function talked(model = scripted((_, n) => (n % 2 === 0 ? toolCall('look', { n }, { id: `c${n}` }) : 'ok'))) {
    const started = await startAgent({ tools: [look], model })
    for (const words of ['one', 'two', 'three']) await started.agent.run(words)
    return { started, model, nodes: nodesIn(await started.log()) }
  }

  test('[HIS-04] twice in a row, the second time across what the first left, is one that goes on', async () => {
    const { started, model, nodes } = await talked()
    await using _ = started
    const { session } = started.agent
    const at = (n: number) => nodes[n]?.seq ?? -1
    // Of each turn: what was said, the answer that calls, the result, the answer.
    const { seq } = session.replace({ start: at(0), end: at(3), message: 'first summary' })
    await started.agent.run('four')
    session.replace({ start: seq, end: at(7), message: 'second summary' })
    await started.agent.run('five')
    const { messages = [] } = model.requests.at(-1) ?? {}
    expectPaired(messages)
    expect(JSON.stringify(messages)).toContain('second summary')
    expect(JSON.stringify(messages)).not.toContain('first summary')
  })

  test.each([
    ['keeps a result whose call it hides', 0, 1],
    ['keeps a call whose result it hides', 2, 3],
    ['begins behind a call', 2, 7],
    ['hides a call alone', 1, 1],
    ['hides a result alone', 2, 2],
  ])('[HIS-04] a range that %s is refused, and nothing changes', async (_, first, last) => {
    const { started, nodes } = await talked()
    await using __ = started
    const { session } = started.agent
    const before = [session.messages(), session.head]
    const range = { start: nodes[first]?.seq ?? -1, end: nodes[last]?.seq ?? -1, message: 'summary' }
    expect(() => session.replace(range)).toThrow(expect.objectContaining({ code: 'INVALID_EVENT' }))
    expect([session.messages(), session.head]).toEqual(before)
    await started.agent.run('and on')
  })

  const nodesIn = (log: readonly SessionEvent[]) =>
    log.filter(({ type }) => type === 'user/message' || type === 'assistant/message' || type === 'tool/result')
})

/** The store, and where each of its appends left the log: the only places at which a crash can cut it. */
function watched(inner: LogStore) {
  const heads: number[] = []
  const store: LogStore = {
    ...inner,
    async acquire(...given) {
      const owner = await inner.acquire(...given)
      const append: Ownership['append'] = async (events, options) => {
        await owner.append(events, options)
        if (events.length > 0) heads.push(options.expectedSeq + events.length)
      }
      return { ...owner, append }
    },
  }
  return { store, heads }
}

/** A store whose session `s` holds these events, as they are. */
async function storeWith(events: readonly SessionEvent[]) {
  const store = memoryStore()
  const owner = await store.acquire('s', { create: { format: 1, id: 's', createdAt: 1 } })
  await owner.append(events, { expectedSeq: 0 })
  await owner.release()
  return store
}

/** The log with the call id of its `n`th result changed. */
const withResultOf = (log: readonly SessionEvent[], n: number, callId: string): readonly SessionEvent[] => {
  const target = ofType(log, 'tool/result')[n]
  const message = k.resultMessage(callId)
  return log.map((event) =>
    event.seq === target?.seq ? { ...target, data: { ...target.data, message: { ...message, id: 'r' } } } : event,
  )
}

describe('a log whose pairs somebody broke', () => {
  const good = k.logOf(k.toolTurn())

  test('[HIS-13] is found at opening: it is refused by rule and place, and left as it is', async () => {
    const store = await storeWith(withResultOf(good, 1, 'c9'))
    const before = await stored(store, 's')
    const opening = createAgent({ model: scripted(['never asked']), store, sessionId: 's' })
    await expect(opening).rejects.toMatchObject({ code: 'INVALID_LOG', rule: 'HISTORY-PAIRING' })
    expect(await stored(store, 's')).toEqual(before)
    // Nobody holds it, and it can still be read, listed and removed.
    await store.delete('s')
  })

  test('[HIS-13] also one whose last turn is closed while the one before it is broken', async () => {
    const other = k.logOf(k.toolTurn(), k.textTurn('m2', 2))
    const store = await storeWith(withResultOf(other, 0, 'c9'))
    await expect(createAgent({ model: scripted([]), store, sessionId: 's' })).rejects.toMatchObject({
      rule: 'HISTORY-PAIRING',
    })
  })

  test('[HIS-14] pairs are checked by id and not by number: as many results, but of others, is a broken log', () => {
    const rules = (log: readonly SessionEvent[]) => checkInvariants(log).map(({ rule }) => rule)
    expect(rules(good)).toEqual([])
    expect(rules(withResultOf(good, 1, 'c9'))).toContain('HISTORY-PAIRING')
    expect(rules(withResultOf(good, 1, 'c2'))).toContain('RESULT-ONCE')
  })
})

describe('what goes back to a model', () => {
  const user = (id: string): UserMessage => k.message(id)
  const said = (...content: AssistantMessage['content']): AssistantMessage => ({
    id: `a${content.length}`,
    role: 'assistant',
    content,
    source: { kind: 'model', provider: 'deepseek', model: 'deepseek-chat' },
  })
  const thought = { type: 'reasoning', text: 'let me think' } as const
  const words = { type: 'text', text: 'hello' } as const
  const call = { type: 'tool-call', id: 'c1', name: 'look', arguments: '{}' } as const

  /** The messages of the one request that this history makes. */
  async function wired(messages: readonly Message[], to: { readonly model?: string; readonly dialect?: Dialect } = {}) {
    await using server = await wireServer([{ body: answer({ text: 'ok' }) }])
    const { model = 'deepseek-chat', dialect } = to
    const adapter =
      dialect === undefined
        ? deepseek({ apiKey: 'sk-12345678', baseURL: server.url, model })
        : openaiCompatible({ baseURL: server.url, model, dialect })
    await ask(adapter, { ...requestTo(adapter), messages })
    return server.requests[0]?.body.messages as readonly Record<string, unknown>[]
  }
  const thinking = [user('u1'), said(thought, words, call), k.resultMessage('c1'), user('u2')]

  test('[HIS-07] [HIS-08] a model that thinks gets its reasoning back unchanged, the first reasoners none of it', async () => {
    expect((await wired(thinking))[1]).toMatchObject({ content: 'hello', reasoning_content: 'let me think' })
    for (const model of ['deepseek-reasoner', 'DeepSeek-R1-0528']) {
      expect((await wired(thinking, { model }))[1]).not.toHaveProperty('reasoning_content')
    }
  })

  test('[HIS-07] through a whole turn: reasoning before a call comes back with the result of the call', async () => {
    await using server = await wireServer([
      { body: answer({ reasoning: 'look first', calls: [{ id: 'c1', name: 'look', arguments: '{}' }] }) },
      { body: answer({ text: 'seen' }) },
    ])
    const model = deepseek({ apiKey: 'sk-12345678', baseURL: server.url })
    await using started = await startAgent({ model, tools: [look] })
    expect((await started.agent.run('go')).text).toBe('seen')
    expect(server.requests[1]?.body.messages).toMatchObject([
      { role: 'user' },
      { role: 'assistant', content: '', reasoning_content: 'look first', tool_calls: [{ id: 'c1' }] },
      { role: 'tool', tool_call_id: 'c1', content: 'seen' },
    ])
  })

  test('[HIS-10] an answer of calls and reasoning alone has an empty text, never null', async () => {
    const [, first] = await wired([user('u1'), said(thought, call), k.resultMessage('c1')])
    expect(first).toMatchObject({ content: '', reasoning_content: 'let me think' })
  })

  test('[HIS-11] an answer that only thought is kept in the log and left out for every provider', async () => {
    const store = memoryStore()
    await using first = await startAgent({ store, model: scripted([[reasoning('hm')]]) })
    await first.agent.run('go')
    await first.agent.close()
    await using server = await wireServer([{ body: answer({ text: 'ok' }) }])
    const model = openaiCompatible({ baseURL: server.url, model: 'other' })
    await using again = await startAgent({ store, model })
    await again.agent.run('and?')
    expect(JSON.stringify(again.agent.session.messages())).toContain('"hm"')
    const sent = server.requests[0]?.body.messages as readonly { role: string; content: string }[]
    expect(sent.filter(({ role, content }) => role === 'assistant' && content === '')).toEqual([])
    expect(sent.at(-1)).toEqual({ role: 'user', content: 'and?' })
  })

  test('[HIS-12] users in a row are sent as one to a model that refuses two, and as they are to others', async () => {
    const two = [user('u1'), user('u2')]
    expect(await wired(two, { model: 'deepseek-reasoner' })).toMatchObject([
      { role: 'user', content: 'text of u1\n\ntext of u2' },
    ])
    expect(await wired(two, { dialect: { mergeUsers: true } })).toHaveLength(1)
    expect(await wired(two)).toHaveLength(2)
  })

  test('[HIS-12] also when the answer between them said nothing that can be sent', async () => {
    const sent = await wired([user('u1'), said(thought), user('u2')], { model: 'deepseek-reasoner' })
    expect(sent.map(({ role }) => role)).toEqual(['user'])
  })

  test('an answer cut off by a cancel keeps its words and asks for nothing', async () => {
    const held = gate()
    const model = scripted([[text('so far'), pause(held), toolCall('look', {})], 'ok'])
    await using started = await startAgent({ model, tools: [look] })
    started.agent.followup('go')
    await held.reached
    await started.agent.cancel()
    await started.agent.run('again')
    expectPaired(model.requests[1]?.messages ?? [])
    expect(JSON.stringify(model.requests[1]?.messages)).toContain('so far')
  })
})
