/** What enters a step: the messages that were claimed, what hooks make of them, and what is true right now. */
import { describe, expect, test } from 'vitest'
import type { SessionEvent } from '../../src/log/events.ts'
import type { UserMessage } from '../../src/log/messages.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { scripted, toolCall } from '../../src/services/adapters/scripted.ts'
import type { PreStep } from '../../src/services/hooks/contract.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { ofType, settle, startAgent, typesOf } from '../kit/agents.ts'

const textsOf = (messages: readonly { readonly content: UserMessage['content'] }[] = []) =>
  messages.flatMap(({ content }) => content.map((block) => ('text' in block ? String(block.text) : block.type)))
const entered = (log: readonly SessionEvent[]) => ofType(log, 'user/message').map(({ data }) => data)
const snapshots = (log: readonly SessionEvent[]) => entered(log).filter(({ source }) => source.kind === 'plugin')
const reasons = (log: readonly SessionEvent[]) => ofType(log, 'turn/end').map(({ data }) => data.reason)
const plugin = (id: string, text: string): UserMessage => ({
  id,
  role: 'user',
  content: [{ type: 'text', text }],
  source: { kind: 'plugin', plugin: 'me/notes' },
})
const look = tool({ name: 'look', description: 'Looks', parameters: { type: 'object' }, execute: () => 'seen' })

/** A hook that waits for its decision. */
function undecided() {
  let decide = (_: 'enter' | 'reject'): void => {}
  const decided = new Promise<'enter' | 'reject'>((resolve) => {
    decide = resolve
  })
  let reach = (): void => {}
  const reached = new Promise<void>((resolve) => {
    reach = resolve
  })
  return {
    reached,
    decide,
    hook: async (_: unknown, next: () => Promise<PreStep>): Promise<PreStep> => {
      reach()
      return (await decided) === 'enter' ? next() : { kind: 'reject' }
    },
  }
}

describe('the messages of a step', () => {
  test('[prestep-003] are those that were claimed, if the hook has nothing to add', async () => {
    await using started = await startAgent()
    const seen: (readonly UserMessage[])[] = []
    started.agent.on('agent/pre-step', ({ messages }, next) => {
      seen.push(messages)
      return next()
    })
    await started.agent.run('hello')
    expect(seen.map(textsOf)).toEqual([['hello']])
    expect(entered(await started.log())).toEqual(seen[0])
  })

  test('[prestep-004] may be rewritten: the model sees what entered, not what was sent', async () => {
    const model = scripted(['ok'])
    await using started = await startAgent({ model })
    started.agent.on('agent/pre-step', ({ messages }) => ({
      kind: 'enter',
      messages: messages.map((message) => ({ ...message, content: [{ type: 'text', text: 'REWRITTEN' }] })),
    }))
    await started.agent.run('original')
    expect(textsOf(entered(await started.log()))).toEqual(['REWRITTEN'])
    expect(textsOf(model.requests[0]?.messages)).toEqual(['REWRITTEN'])
  })

  test('[prestep-005] may be added to, each with a source of its own, in the order of the decision', async () => {
    const model = scripted(['ok'])
    await using started = await startAgent({ model })
    started.agent.on('agent/pre-step', ({ messages }) => ({
      kind: 'enter',
      messages: [...messages, plugin('n1', 'a note')],
    }))
    await started.agent.run('go')
    expect(entered(await started.log()).map(({ source }) => source.kind)).toEqual(['user', 'plugin'])
    expect(textsOf(model.requests[0]?.messages)).toEqual(['go', 'a note'])
  })

  test('[prestep-006] none at the first step ends the turn before anything is asked', async () => {
    const model = scripted([])
    await using started = await startAgent({
      model,
      hooks: { 'agent/pre-step': () => ({ kind: 'enter', messages: [] }) },
    })
    const receipt = started.agent.followup('go')
    await started.agent.whenIdle()
    const log = await started.log()
    expect(typesOf(log)).toEqual(['agent/inbox/spliced', 'turn/start', 'agent/inbox/spliced', 'turn/end'])
    expect(reasons(log)).toEqual([{ kind: 'completed' }])
    expect(model.requests).toEqual([])
    expect(started.agent.inbox.nextTurn).toEqual([])
    expect(await receipt.entered).toMatchObject({ kind: 'dropped', turn: 1 })
  })

  test('[prestep-007] none at a later step opens it neither, and the turn is done', async () => {
    const model = scripted(['ok'])
    await using started = await startAgent({ model })
    started.agent.on('agent/turn-stopping', () => void started.agent.inject('once more'))
    started.agent.on('agent/pre-step', ({ step }, next) => (step > 1 ? { kind: 'enter', messages: [] } : next()))
    expect((await started.agent.run('finish once')).reason).toEqual({ kind: 'completed' })
    expect(ofType(await started.log(), 'step/start')).toHaveLength(1)
    expect(model.requests).toHaveLength(1)
  })

  // Tool results are claimed as well, but they are no messages: the hook does not see them.
  test('[prestep-008] are proposed with their turn and step; results of tools are not among them', async () => {
    await using started = await startAgent({ model: scripted([toolCall('look', {}), 'done']), tools: [look] })
    const seen: unknown[] = []
    started.agent.on('agent/pre-step', ({ turn, step, messages }, next) => {
      seen.push({ turn, step, messages: messages.length })
      return next()
    })
    await started.agent.run('go')
    expect(seen).toEqual([
      { turn: 1, step: 1, messages: 1 },
      { turn: 1, step: 2, messages: 0 },
    ])
  })

  test('[prestep-010] are shown to the hook frozen, and are not the objects the caller holds', async () => {
    const message = plugin('mine', 'as sent')
    await using started = await startAgent()
    let tried = 0
    started.agent.on('agent/pre-step', (payload, next) => {
      const [shown] = payload.messages
      const attempts = [
        () => Object.assign(payload, { messages: [] }),
        () => (payload.messages as UserMessage[]).push(plugin('more', 'more')),
        () => Object.assign(shown ?? {}, { id: 'other' }),
        () => Object.assign(shown?.content[0] ?? {}, { text: 'changed' }),
        () => (payload.prompt.tools as unknown[]).push({ name: 'mine' }),
      ]
      for (const attempt of attempts) {
        expect(attempt).toThrow(TypeError)
        tried += 1
      }
      expect(shown).toEqual(message)
      expect(shown).not.toBe(message)
      return next()
    })
    await started.agent.run(message)
    expect(tried).toBe(5)
    expect(entered(await started.log())).toEqual([message])
  })

  test('[prestep-016] are claimed first, then the prompt is put together, then the hook decides', async () => {
    const order: string[] = []
    await using started = await startAgent()
    started.agent.on('session/event', (event) => {
      if (event.type === 'agent/inbox/spliced' && event.data.outcome === 'claimed') order.push('claimed')
    })
    started.agent.on('system-prompt/assemble', (_, next) => {
      order.push('assembled')
      return next()
    })
    started.agent.on('agent/pre-step', (_, next) => {
      order.push('decided')
      return next()
    })
    await started.agent.run('go')
    expect(order).toEqual(['claimed', 'assembled', 'decided'])
  })
})

describe('what comes in while the hook decides', () => {
  test('[prestep-011] joins the next step of the turn, in its order', async () => {
    const model = scripted(['one', 'two'])
    const { hook, reached, decide } = undecided()
    await using started = await startAgent({ model, hooks: { 'agent/pre-step': hook } })
    const turn = started.agent.run('go')
    await reached
    started.agent.inject('c')
    started.agent.steer('s')
    decide('enter')
    expect((await turn).steps).toBe(2)
    expect(textsOf(model.requests[0]?.messages)).toEqual(['go'])
    expect(textsOf(model.requests[1]?.messages)).toEqual(['go', 'one', 'c', 's'])
    expect(ofType(await started.log(), 'turn/start')).toHaveLength(1)
  })

  test('[prestep-012] stays if the step is rejected, and enters with the next turn', async () => {
    const model = scripted(['ok'])
    const { hook, reached, decide } = undecided()
    await using started = await startAgent({ model })
    const remove = started.agent.on('agent/pre-step', hook)
    const turn = started.agent.run('forbidden')
    await reached
    started.agent.inject('c')
    started.agent.steer('s')
    decide('reject')
    expect((await turn).reason).toEqual({ kind: 'blocked' })
    await settle()
    expect(started.agent.status).toBe('idle')
    expect(
      textsOf(started.agent.inbox.nextStep.flatMap((item) => (item.kind === 'message' ? [item.message] : []))),
    ).toEqual(['c', 's'])
    remove()
    await started.agent.run('resume')
    expect(textsOf(model.requests[0]?.messages)).toEqual(['c', 's', 'resume'])
  })
})

describe('a rejection', () => {
  test('[prestep-013] of a later step ends the turn blocked, with its reason', async () => {
    const model = scripted(['ok'])
    await using started = await startAgent({ model })
    let proposals = 0
    started.agent.on('agent/turn-stopping', () => void started.agent.inject('once more'))
    started.agent.on('agent/pre-step', ({ step }, next) => {
      proposals += 1
      return step === 2 ? { kind: 'reject', reason: 'enough' } : next()
    })
    expect((await started.agent.run('go')).reason).toEqual({ kind: 'blocked', reason: 'enough' })
    expect(proposals).toBe(2)
    expect(ofType(await started.log(), 'step/end').map(({ data }) => data)).toEqual([
      { turn: 1, step: 1, outcome: { kind: 'completed' } },
    ])
    expect(model.requests).toHaveLength(1)
  })

  test('[prestep-032] ends with the plug-in that made it', async () => {
    const model = scripted(['ok'])
    await using started = await startAgent({ model })
    const remove = started.agent.on('agent/pre-step', () => ({ kind: 'reject' }))
    expect((await started.agent.run('go')).reason).toEqual({ kind: 'blocked' })
    remove()
    expect((await started.agent.run('go')).reason).toEqual({ kind: 'completed' })
    expect(model.requests).toHaveLength(1)
  })
})

describe('a hook that throws', () => {
  const error = { code: 'UNKNOWN', message: 'boom' }
  const boom = () => {
    throw new Error('boom')
  }

  test('[prestep-014] ends the turn before a step, is told once, and breaks nothing else', async () => {
    const model = scripted(['ok'])
    await using started = await startAgent({ model })
    const told: unknown[] = []
    started.agent.on('agent/error', (payload) => told.push(payload.error))
    const remove = started.agent.on('agent/pre-step', boom)
    expect((await started.agent.run('go')).reason).toEqual({ kind: 'error', error })
    const log = await started.log()
    expect(typesOf(log)).toEqual([
      'agent/inbox/spliced',
      'turn/start',
      'agent/inbox/spliced',
      'agent/hook-failed',
      'turn/end',
    ])
    expect(log[2]?.data).toMatchObject({ queue: 'next-turn', deleteCount: 1, outcome: 'claimed' })
    expect(told).toEqual([expect.objectContaining({ message: 'boom' })])
    expect(model.requests).toEqual([])
    remove()
    expect((await started.agent.run('again')).reason).toEqual({ kind: 'completed' })
  })

  test('[prestep-015] leaves the other messages where they wait', async () => {
    await using started = await startAgent({ hooks: { 'agent/pre-step': boom } })
    const statuses: string[] = []
    started.agent.on('agent/status', (status) => statuses.push(status))
    started.agent.followup('first')
    started.agent.followup('second')
    await started.agent.whenIdle()
    expect(reasons(await started.log())).toEqual([{ kind: 'error', error }])
    expect(statuses).toEqual(['running', 'idle'])
    expect(started.agent.inbox.nextTurn).toMatchObject([{ message: { content: [{ text: 'second' }] } }])
  })

  test('[prestep-017] while the prompt is put together ends the turn before a step, too', async () => {
    const model = scripted([])
    const system = [{ name: 'rules', text: boom }]
    await using started = await startAgent({ model, system })
    expect((await started.agent.run('go')).reason).toEqual({ kind: 'error', error })
    expect(typesOf(await started.log())).not.toContain('step/start')
    expect(typesOf(await started.log())).not.toContain('request/header')
    expect(model.requests).toEqual([])
  })
})

describe('what is true right now', () => {
  const mode = (text: () => string) => ({ context: [{ name: 'policy', text }] })

  test('[prestep-019] enters after the prompt of the first turn, as a snapshot that names its sections', async () => {
    await using started = await startAgent(mode(() => 'Mode: read-only.'))
    await started.agent.run('first')
    const log = await started.log()
    const [prompt, snapshot] = entered(log)
    expect(textsOf(prompt ? [prompt] : [])).toEqual(['first'])
    expect(snapshot?.source).toEqual({
      kind: 'plugin',
      plugin: 'pawl/runtime-context',
      form: 'snapshot',
      sections: [{ name: 'policy', text: 'Mode: read-only.' }],
    })
    expect(textsOf(snapshot ? [snapshot] : [])[0]).toContain('Mode: read-only.')
    expect(typesOf(log).slice(4, 7)).toEqual(['user/message', 'user/message', 'request/header'])
  })

  test('[prestep-020] is not said again while it stays true', async () => {
    await using started = await startAgent(mode(() => 'Mode: read-only.'))
    await started.agent.run('first')
    await started.agent.run('second')
    expect(snapshots(await started.log())).toHaveLength(1)
  })

  test('[prestep-021] is said anew when it changes, and the system text stays as it was', async () => {
    let now = 'read-only'
    const model = scripted(() => 'ok')
    await using started = await startAgent({ model, system: 'Be brief.', ...mode(() => `Mode: ${now}.`) })
    await started.agent.run('first')
    now = 'write'
    await started.agent.run('second')
    const log = await started.log()
    expect(textsOf(snapshots(log)).map((text) => text.split('\n').at(-1))).toEqual(['Mode: read-only.', 'Mode: write.'])
    expect(ofType(log, 'request/header')).toHaveLength(1)
    expect(model.requests.map(({ system }) => system)).toEqual(['Be brief.', 'Be brief.'])
  })

  test('[prestep-023] is nothing where nobody says anything', async () => {
    await using started = await startAgent()
    await started.agent.run('go')
    expect(snapshots(await started.log())).toEqual([])
  })

  test('[prestep-025] is taken back once when it no longer is, also if a summary took its place', async () => {
    let now = 'Mode: read-only.'
    const store = memoryStore()
    const model = scripted(() => 'ok')
    {
      await using started = await startAgent({ store, model, ...mode(() => now) })
      await started.agent.run('first')
      const said = ofType(await started.log(), 'user/message')
      const [start, end] = [said[0]?.seq ?? 0, said[1]?.seq ?? 0]
      started.agent.session.replace({ start, end, message: 'summed up' })
    }
    now = ''
    await using reopened = await startAgent({ store, model, ...mode(() => now) })
    await reopened.agent.run('second')
    expect(textsOf(model.requests[1]?.messages)).toEqual([
      'summed up',
      'ok',
      'second',
      expect.stringContaining('no longer applies'),
    ])
    const [marker] = snapshots(await reopened.log()).slice(1)
    expect(marker?.source).toEqual({ kind: 'plugin', plugin: 'pawl/runtime-context' })
    await reopened.agent.run('third')
    expect(snapshots(await reopened.log())).toHaveLength(2)
  })

  test('is said in full again after a summary took its place, changed or not', async () => {
    await using started = await startAgent(mode(() => 'Mode: read-only.'))
    await started.agent.run('first')
    const seq = ofType(await started.log(), 'user/message')[1]?.seq ?? 0
    started.agent.session.replace({ start: seq, end: seq, message: 'summed up' })
    await started.agent.run('second')
    const [, again] = snapshots(await started.log())
    expect(textsOf(again ? [again] : [])[0]).toContain('Mode: read-only.')
  })

  test('[prestep-026] is not touched by what replaces other messages', async () => {
    await using started = await startAgent()
    await started.agent.run('first')
    const seq = ofType(await started.log(), 'user/message')[0]?.seq ?? 0
    started.agent.session.replace({ start: seq, end: seq, message: plugin('s', 'summed up') })
    await started.agent.run('second')
    expect(textsOf(snapshots(await started.log()))).toEqual(['summed up'])
  })

  test('[prestep-027] is said in full where the last snapshot is none', async () => {
    await using started = await startAgent(mode(() => 'Mode: read-only.'))
    const source = { kind: 'plugin', plugin: 'pawl/runtime-context', form: 'snapshot' } as const
    const block = { type: 'text', text: 'Mode: read-only.' } as const
    await started.agent.run('first')
    await started.agent.run({ id: 'forged', role: 'user', content: [block, block], source })
    await started.agent.run('third')
    const said = snapshots(await started.log())
    expect(said.map(({ id }) => id === 'forged')).toEqual([false, true, false])
    expect(said[2]?.content).toEqual(said[0]?.content)
  })

  test('[prestep-028] is proposed again when a hook left it out', async () => {
    await using started = await startAgent(mode(() => 'Mode: read-only.'))
    started.agent.on('agent/pre-step', async ({ turn, messages }, next) =>
      turn === 1 ? { kind: 'enter', messages } : next(),
    )
    await started.agent.run('first')
    expect(snapshots(await started.log())).toEqual([])
    await started.agent.run('second')
    expect(snapshots(await started.log())).toHaveLength(1)
  })

  test('[prestep-029] that a tool changed is said at the next step', async () => {
    let now = 'before'
    const change = tool({
      name: 'change',
      description: 'Changes it',
      parameters: { type: 'object' },
      execute: () => {
        now = 'after'
      },
    })
    const model = scripted([toolCall('change', {}), 'done'])
    await using started = await startAgent({ model, tools: [change], ...mode(() => now) })
    await started.agent.run('go')
    const log = await started.log()
    const second = ofType(log, 'step/start')[1]?.seq ?? 0
    expect(log[second + 1]).toMatchObject({ type: 'user/message', data: { source: { kind: 'plugin' } } })
    expect(textsOf(model.requests[1]?.messages).at(-1)).toContain('after')
  })
})
