/** Signals that come before there is an agent to give them to. */
import { afterEach, expect, test } from 'vitest'
import { createAgent } from '../../src/agent.ts'
import { drive } from '../../src/cli/drive.ts'
import { catchSignals, type Signals } from '../../src/cli/signals.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { hangs, scripted, text } from '../../src/services/adapters/scripted.ts'
import { ofType, stored, typesOf } from '../kit/agents.ts'
import { silentConsole } from './silent-console.ts'

let signals: Signals | undefined
afterEach(() => signals?.dispose())

async function* nothing() {}

test.each(['SIGTERM', 'SIGHUP'] as const)(
  '%s while the agent is being opened suspends the turn it carries on',
  async (signal) => {
    const store = memoryStore()
    const options = {
      store,
      sessionId: 's',
      model: scripted([
        [text('Hel'), hangs()],
        [text('Hel'), hangs()],
      ]),
    }
    const first = await createAgent(options)
    first.followup('hello')
    await first.close()
    signals = catchSignals()
    const opening = createAgent(options)
    process.emit(signal)
    const agent = await opening
    const ending = await drive(agent, {
      from: 0,
      earlier: nothing(),
      console: silentConsole(),
      approvals: 'all',
      signals,
    })
    expect(ending).toEqual({ kind: 'suspended' })
    const log = await stored(store, 's')
    expect(typesOf(log).at(-1)).toBe('session/suspended')
    expect(ofType(log, 'turn/end')).toEqual([])
  },
)

test('a prompt is in the log before a suspension that was asked for before it', async () => {
  const store = memoryStore()
  signals = catchSignals()
  process.emit('SIGTERM')
  const agent = await createAgent({ store, sessionId: 's', model: scripted([[hangs()]]) })
  const ending = await drive(agent, {
    from: 0,
    earlier: nothing(),
    console: silentConsole(),
    approvals: 'all',
    signals,
    prompt: 'hello',
  })
  expect(ending).toEqual({ kind: 'suspended' })
  const log = await stored(store, 's')
  expect(typesOf(log)).toContain('turn/start')
  expect(typesOf(log).at(-1)).toBe('session/suspended')
})

test('after dispose the process has none of its handlers', () => {
  const counts = () => (['SIGTERM', 'SIGHUP', 'SIGINT'] as const).map((signal) => process.listenerCount(signal))
  const before = counts()
  const caught = catchSignals()
  caught.handle({ cancel() {}, suspend() {} })
  expect(counts()).toEqual(before.map((count) => count + 1))
  caught.dispose()
  expect(counts()).toEqual(before)
})
