/** The player can fail: services with a defect each, and the path that shows it. */
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import type { PathInput } from '../../src/testing/path-input.ts'
import { createLane, type Lane, type PathMismatch, playOn } from '../../src/testing/play.ts'
import { ANSWERED, ASKED, byHand, calls, LAST_STEP } from './by-hand.ts'

type Defect =
  | 'a body runs twice'
  | 'a hook is called twice'
  | 'a timer is left behind'
  | 'a late result is taken'
  | 'a failing tool is answered as if it had not'
  | 'the body runs before anybody is asked'

const defect = vi.hoisted((): { now: Defect | undefined } => ({ now: undefined }))

vi.mock('../../src/services/tools/execute.ts', async (original) => {
  const own = await original<typeof import('../../src/services/tools/execute.ts')>()
  const execute: typeof own.execute = async (runtime, execution) => {
    if (defect.now === 'a body runs twice') void own.execute(runtime, execution)
    const executed = await own.execute(runtime, execution)
    return defect.now === 'a failing tool is answered as if it had not'
      ? { ...executed, outcome: { kind: 'ok', value: 'fine', content: [] } }
      : executed
  }
  return { ...own, execute }
})

vi.mock('../../src/services/hooks/failure.ts', async (original) => {
  const own = await original<typeof import('../../src/services/hooks/failure.ts')>()
  const callHook: typeof own.callHook = (runtime, hook, at, payload, core) => {
    if (defect.now === 'a hook is called twice') void own.callHook(runtime, hook, at, payload, core)
    return own.callHook(runtime, hook, at, payload, core)
  }
  return { ...own, callHook }
})

vi.mock('../../src/services/wait.ts', async (original) => {
  const own = await original<typeof import('../../src/services/wait.ts')>()
  const sleep: typeof own.sleep = (runtime, ms, stopped) => {
    const heeded = defect.now === 'a timer is left behind' ? new AbortController().signal : stopped
    return own.sleep(runtime, ms, heeded)
  }
  return { ...own, sleep }
})

vi.mock('../../src/services/tools/late.ts', async (original) => {
  const own = await original<typeof import('../../src/services/tools/late.ts')>()
  const sayLate: typeof own.sayLate = (runtime, input, result) => {
    if (defect.now !== 'a late result is taken') return own.sayLate(runtime, input, result)
    runtime.append({ type: 'session/suspended', data: {} })
    return undefined
  }
  return { ...own, sayLate }
})

vi.mock('../../src/services/tools/call.ts', async (original) => {
  const own = await original<typeof import('../../src/services/tools/call.ts')>()
  const materialise: typeof own.materialise = async (tool, input) => {
    const parsed = await own.materialise(tool, input)
    if (defect.now === 'the body runs before anybody is asked' && input.phase === 'authorizing') {
      void (async () => tool?.execute({}, { ...NO_CONTEXT, callId: input.callId, run: 1 }))()
    }
    return parsed
  }
  return { ...own, materialise }
})

const NO_CONTEXT = {
  signal: new AbortController().signal,
  sessionId: 'none',
  turn: 1,
  step: 1,
  idempotencyKey: 'none',
  steer: () => ({ id: 'none', accepted: Promise.resolve({ seq: 0 }) }),
  inject: () => ({ id: 'none', accepted: Promise.resolve({ seq: 0 }) }),
  addContext: () => {},
  concludeTurn: () => {},
  progress: () => {},
}

let lane: Lane
beforeAll(async () => {
  lane = await createLane()
})
afterAll(() => lane[Symbol.asyncDispose]())
afterEach(() => {
  defect.now = undefined
})

const allowed = { type: 'allowed', callId: 'c1' } as const
const approval: readonly PathInput[] = [...ASKED, calls('refund'), allowed, { type: 'approve', callId: 'c1', run: 0 }]
const settled = { type: 'settled', callId: 'c1', outcome: 'ok' } as const

/** The path, the input it is noticed after, and what differs then. */
const NOTICED: Readonly<Record<Defect, readonly [readonly PathInput[], number, Partial<PathMismatch>]>> = {
  'a body runs twice': [
    [...ASKED, calls('lookup'), allowed, settled, ...LAST_STEP],
    3,
    { what: 'what the agent waits for', actual: ['body c1 1', 'body c1 1'] },
  ],
  'a hook is called twice': [
    [...ASKED, ...ANSWERED],
    0,
    { what: 'what the agent waits for', actual: ['pre-step 1.1', 'pre-step 1.1'] },
  ],
  'a timer is left behind': [
    [...approval, settled, ...LAST_STEP],
    4,
    { what: 'the timers that are set', expected: [], actual: ['60004'] },
  ],
  'a late result is taken': [
    [...ASKED, calls('lookup'), allowed, { type: 'cancel' }, { type: 'settle-timeout' }],
    5,
    { what: 'the durable events', actual: ['session/suspended {}'] },
  ],
  'a failing tool is answered as if it had not': [
    [...ASKED, calls('lookup'), allowed, { ...settled, outcome: 'error' }, ...LAST_STEP],
    4,
    { what: 'the durable events' },
  ],
  'the body runs before anybody is asked': [
    [...ASKED, calls('lookup'), allowed, settled, ...LAST_STEP],
    2,
    {
      what: 'what was asked and should not',
      actual: ['body c1 1: asked, though no actor "tool.c1.executing.1" lives'],
    },
  ],
}

test.each(Object.entries(NOTICED) as [Defect, (typeof NOTICED)[Defect]][])(
  '%s, which the player notices',
  async (name, [inputs, step, told]) => {
    const path = byHand(name, inputs)
    await playOn(lane, path)
    defect.now = name
    // Nothing more comes: what is wrong is there at once.
    const playing = playOn(lane, path, { patienceMs: 200 })
    await expect(playing).rejects.toMatchObject({ name: 'PathMismatch', label: name, step, ...told })
  },
)
