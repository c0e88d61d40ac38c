import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { SessionEvent } from '../../src/log/events.ts'
import type { LogStore } from '../../src/log/store.ts'
import { sqliteStore } from '../../src/log/stores/sqlite.ts'
import { InvalidOption } from '../../src/services/errors.ts'
import type { Hooks } from '../../src/services/hooks/contract.ts'
import { tool } from '../../src/services/tools/tool.ts'
import type { PathInput } from '../../src/testing/path-input.ts'
import { agentPaths } from '../../src/testing/paths.ts'
import { createLane, type Lane, PathMismatch, playOn, playPath, playPaths } from '../../src/testing/play.ts'
import { ANSWERED, ASKED, byHand, calls, LAST_STEP, SETUP } from './by-hand.ts'

let lane: Lane
let folder: string
beforeAll(async () => {
  lane = await createLane()
  folder = await mkdtemp(join(tmpdir(), 'pawl-play-'))
})
afterAll(async () => {
  await lane[Symbol.asyncDispose]()
  await rm(folder, { recursive: true })
})

async function* withoutLast<T>(items: AsyncIterable<T>): AsyncGenerator<T> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  yield* all.slice(0, -1)
}

const crash = { type: 'crash', recovery: 'continue' } as const
const first = { callId: 'c1' }
const allowed = { type: 'allowed', ...first } as const
const settled = { type: 'settled', ...first, outcome: 'ok' } as const
const FAILS_ONCE: readonly PathInput[] = [
  ...ASKED,
  { type: 'request-fails', retryable: true },
  { type: 'error-handled' },
  { type: 'waited' },
  ...ANSWERED,
]
const approve = { type: 'approve', ...first, run: 0 } as const

const PLAYED: readonly (readonly [string, readonly string[], readonly PathInput[]])[] = [
  ['one plain turn', ['completed'], [...ASKED, ...ANSWERED]],
  [
    'a reject',
    ['blocked'],
    [
      { type: 'followup', id: 'm1' },
      { type: 'prepared', decision: 'reject' },
    ],
  ],
  [
    'a hook that throws',
    ['error'],
    [
      { type: 'followup', id: 'm1' },
      { type: 'prepared', decision: 'fail' },
    ],
  ],
  [
    'nothing enters',
    ['completed'],
    [
      { type: 'followup', id: 'm1' },
      { type: 'prepared', decision: 'enter-none' },
    ],
  ],
  ['stopped by policy', ['stopped-by-policy'], [...ASKED, ANSWERED[0]!, { type: 'stopping', decision: 'stop' }]],
  ['a crash while the model speaks', ['completed'], [...ASKED, { type: 'speaks' }, crash, ...ANSWERED]],
  ['two crashes in a row', ['completed'], [...ASKED, crash, crash, ...ANSWERED]],
  [
    'a crash that interrupts, and the message is woken',
    ['interrupted', 'completed'],
    [
      { type: 'followup', id: 'm1' },
      { type: 'crash', recovery: 'interrupt' },
      { type: 'wake' },
      ...ASKED.slice(1),
      ...ANSWERED,
    ],
  ],
  ['a cancel posted to a dead process', ['aborted'], [...ASKED, calls('charge'), allowed, { ...crash, cancel: true }]],
  [
    'a suspend while a body runs',
    ['completed'],
    [...ASKED, calls('lookup'), allowed, { type: 'suspend' }, settled, ...LAST_STEP],
  ],
  ['a fork while a body runs', ['completed'], [...ASKED, calls('charge'), allowed, { type: 'fork' }, ...LAST_STEP]],
  ['a crash of the fork', ['completed'], [...ASKED, { type: 'fork' }, crash, ...ANSWERED]],
  [
    'a cancel while the model speaks, and what came meanwhile',
    ['aborted', 'completed'],
    [
      ...ASKED,
      { type: 'speaks' },
      { type: 'inject', id: 'm2' },
      { type: 'cancel', keepInbox: true },
      { type: 'wake' },
      ...LAST_STEP,
    ],
  ],
  [
    'a cancel that a body does not heed',
    ['aborted'],
    [...ASKED, calls('lookup', 'charge'), allowed, { type: 'cancel' }, { type: 'settle-timeout' }],
  ],
  [
    'a cancel that a hook does not heed',
    ['aborted'],
    [{ type: 'followup', id: 'm1' }, { type: 'cancel' }, { type: 'settle-timeout' }],
  ],
  ['an approval', ['completed'], [...ASKED, calls('refund'), allowed, approve, settled, ...LAST_STEP]],
  [
    'an approval asked for by a hook, and refused after a crash',
    ['completed'],
    [...ASKED, calls('charge'), { type: 'asked', ...first }, crash, { type: 'deny', ...first, run: 0 }, ...LAST_STEP],
  ],
  [
    'an approval that expires',
    ['completed'],
    [...ASKED, calls('refund'), allowed, { type: 'expired', ...first }, ...LAST_STEP],
  ],
  [
    'two questions that nobody answers',
    ['completed'],
    [
      ...ASKED,
      calls('refund', 'ship'),
      allowed,
      { type: 'asked', callId: 'c2' },
      { type: 'expired', ...first },
      { type: 'expired', callId: 'c2' },
      ...LAST_STEP,
    ],
  ],
  [
    'a tool that asks before it runs again',
    ['completed'],
    [...ASKED, calls('refund'), allowed, approve, crash, { type: 'approve', ...first, run: 1 }, settled, ...LAST_STEP],
  ],
  [
    'a probe',
    ['completed'],
    [...ASKED, calls('ship'), allowed, crash, { type: 'probed', ...first, answer: 'done' }, ...LAST_STEP],
  ],
  [
    'a probe that finds nothing done',
    ['completed'],
    [...ASKED, calls('ship'), allowed, crash, { type: 'probed', ...first, answer: 'not-done' }, settled, ...LAST_STEP],
  ],
  [
    'a retry, and a crash while it is waited for',
    ['completed'],
    [
      ...ASKED,
      { type: 'request-fails', retryable: true },
      { type: 'error-handled' },
      crash,
      { type: 'waited' },
      ...ANSWERED,
    ],
  ],
  [
    'a request that fails for good',
    ['error'],
    [...ASKED, { type: 'speaks' }, { type: 'request-fails', retryable: false }, { type: 'error-handled' }],
  ],
  [
    'a hook that asks again for what failed for good, and a crash then',
    ['completed'],
    [
      ...ASKED,
      { type: 'request-fails', retryable: false },
      { type: 'error-handled', decision: 'retry' },
      { type: 'waited' },
      crash,
      ...ANSWERED,
    ],
  ],
  [
    'a hook that gives up, and one that throws',
    ['error', 'error'],
    [
      ...ASKED,
      { type: 'followup', id: 'm2' },
      { type: 'request-fails', retryable: true },
      { type: 'error-handled', decision: 'give-up' },
      { type: 'wake' },
      { type: 'prepared', decision: 'enter' },
      { type: 'request-fails', retryable: true },
      { type: 'error-handled', decision: 'fail' },
    ],
  ],
  [
    'a hook that blocks a result, and one that throws after it',
    ['completed'],
    [
      ...ASKED,
      calls('lookup', 'ship'),
      allowed,
      { type: 'allowed', callId: 'c2' },
      { type: 'settled', ...first, outcome: 'adds', judged: 'block' },
      { type: 'settled', callId: 'c2', outcome: 'concludes', judged: 'fail' },
      ...LAST_STEP,
    ],
  ],
  [
    'calls side by side, one adds a message and one concludes the turn',
    ['completed', 'completed'],
    [
      ...ASKED,
      { type: 'followup', id: 'm2' },
      { type: 'speaks' },
      calls('lookup', 'ship'),
      { type: 'allowed', callId: 'c2' },
      allowed,
      { type: 'settled', callId: 'c2', outcome: 'adds' },
      { type: 'settled', callId: 'c1', outcome: 'concludes' },
      ...LAST_STEP,
      ...LAST_STEP,
    ],
  ],
  ['an answer over the limit', ['limit'], [...ASKED, { ...calls('lookup'), limited: true } as PathInput]],
  [
    'an actor that throws',
    ['completed'],
    [...ASKED, calls('lookup'), allowed, { type: 'actor-fails', actor: first }, ...LAST_STEP],
  ],
  [
    'messages taken out again',
    ['completed'],
    [
      ...ASKED,
      { type: 'steer', id: 'm2' },
      { type: 'followup', id: 'm3' },
      { type: 'remove', id: 'm3' },
      { type: 'clear' },
      ...ANSWERED,
    ],
  ],
]

test.each(PLAYED)('%s: %j', async (label, ends, inputs) => {
  const path = byHand(label, inputs)
  expect(path.ends).toEqual(ends)
  const played = await playOn(lane, path)
  expect(played.ends).toEqual(ends)
  expect(played.inputs).toEqual(inputs)
  expect(played.skipped).toBe(0)
  expect(played.crashes).toBe(inputs.filter(({ type }) => type === 'crash').length)
  expect(played.comparisons).toBeGreaterThan(5 * inputs.length)
})

test('paths share a lane, and die together', async () => {
  const all = await Promise.all(PLAYED.map(([label, , inputs]) => playOn(lane, byHand(label, inputs))))
  expect(all.map(({ ends }) => ends)).toEqual(PLAYED.map(([, ends]) => ends))
})

test('a store of one’s own is opened again for each crash', async () => {
  const file = join(folder, 'own.db')
  let opened = 0
  const open = () => {
    opened += 1
    return sqliteStore(file)
  }
  const path = byHand('crashes', [...ASKED, crash, crash, ...ANSWERED])
  expect((await playPath(path, { store: { open } })).ends).toEqual(['completed'])
  expect(opened).toBe(3)
})

test('many paths are played at once, and each is told of', async () => {
  const paths = agentPaths({ maxSteps: 1, tools: [], extras: 1 }).slice(0, 40)
  const ends = new Map<string, readonly string[]>()
  await playPaths(paths, {
    onPlayed: (path, outcome) => {
      if ('thrown' in outcome) throw outcome.thrown
      ends.set(path.label, outcome.ends)
    },
  })
  expect([...ends].sort()).toEqual(paths.map(({ label, ends }) => [label, ends]).sort())
  expect(ends.size).toBe(40)
})

describe('what is a user’s own', () => {
  const real = (execute: Parameters<typeof tool>[0]['execute']) => {
    const own = tool({ name: 'own', description: 'One’s own.', parameters: {}, execute })
    return {
      ...SETUP,
      tools: [{ name: 'own', mode: 'exclusive', onCrash: 'unknown', needsApproval: false, args: {}, tool: own }],
    } as const
  }
  const inputs: readonly PathInput[] = [...ASKED, calls('own'), allowed, settled, ...LAST_STEP]

  test('a tool does its own work', async () => {
    const runs: unknown[] = []
    const setup = real((args) => runs.push(args))
    const played = await playOn(lane, byHand('own tool', inputs, setup))
    expect(runs).toEqual([{}])
    expect(played.inputs).toEqual(inputs)
  })

  test('a tool that fails is held to that, and the path goes on', async () => {
    const setup = real(() => {
      throw new Error('no')
    })
    const played = await playOn(lane, byHand('own tool', inputs, setup))
    expect(played.inputs[4]).toEqual({ type: 'settled', callId: 'c1', outcome: 'error' })
    expect(played.ends).toEqual(['completed'])
  })

  test('a tool that concludes the turn, adds messages and steers is followed on its way', async () => {
    const setup = real((_, context) => {
      context.steer('steered')
      context.addContext('one')
      context.addContext('two')
      context.concludeTurn()
    })
    const played = await playOn(lane, byHand('own tool', inputs, setup))
    expect(played.inputs.map(({ type }) => type)).toEqual([
      ...['followup', 'prepared', 'answered', 'allowed', 'steer', 'settled'],
      ...['prepared', 'answered', 'stopping'],
    ])
    expect(played.inputs[5]).toMatchObject({ outcome: 'concludes', added: [expect.any(String), expect.any(String)] })
  })

  test('a hook that rejects ends the path early, and what comes after it is passed over', async () => {
    const hooks = { 'agent/pre-step': () => ({ kind: 'reject' as const }) }
    const played = await playOn(lane, byHand('own hook', [...ASKED, ...ANSWERED]), { hooks })
    expect(played.ends).toEqual(['blocked'])
    expect(played.skipped).toBe(2)
  })

  test('a hook that lets in a message of its own, and one that denies every call', async () => {
    const extra = { id: 'extra', role: 'user', content: [], source: { kind: 'user' } } as const
    let n = 0
    const played = await playOn(
      lane,
      byHand(
        'own hooks',
        inputs,
        real(() => 'never'),
      ),
      {
        hooks: {
          'agent/pre-step': async (_, next) => {
            const decided = await next()
            n += 1
            return decided.kind === 'enter'
              ? { kind: 'enter', messages: [...decided.messages, { ...extra, id: `extra-${n}` }] }
              : decided
          },
          'tools/pre-execute': () => ({ kind: 'deny', reason: 'never' }),
          'tools/post-execute': async (_, next) => ({ ...(await next()), contexts: ['a word'] }),
        },
      },
    )
    expect(played.inputs[1]).toEqual({ type: 'prepared', decision: 'enter', entered: ['m1', 'extra-1'] })
    expect(played.inputs[3]).toEqual({ type: 'denied', callId: 'c1', added: [expect.any(String)] })
    expect(played.ends).toEqual(['completed'])
  })

  test.each([
    ['gives up where the policy would go on', async () => undefined, { decision: 'give-up' }, ['error']],
    ['asks again by itself', async () => ({ kind: 'retry' as const }), { decision: 'retry' }, ['completed']],
    ['leaves it to the policy', async (_: unknown, next: () => Promise<undefined>) => next(), {}, ['completed']],
    [
      'throws',
      async () => {
        throw new Error('no')
      },
      { decision: 'fail' },
      ['error'],
    ],
  ] as const)('a hook that %s is seen to, and held to it', async (_, hook, decision, ends) => {
    const played = await playOn(lane, byHand('own hook', FAILS_ONCE), {
      hooks: { 'agent/request-error': hook as Hooks['agent/request-error'] },
    })
    expect(played.inputs[3]).toEqual({ type: 'error-handled', ...decision })
    expect(played.ends).toEqual(ends)
  })

  test('a hook that asks the policy and does not wait for it is seen to do as it says', async () => {
    const played = await playOn(lane, byHand('own hook', FAILS_ONCE), {
      hooks: {
        'agent/request-error': (_, next) => {
          void next()
          return { kind: 'retry' }
        },
      },
    })
    expect(played.inputs).toEqual(FAILS_ONCE)
  })

  test.each([
    'agent/pre-step',
    'agent/request-error',
    'tools/pre-execute',
    'tools/post-execute',
    'agent/turn-stopping',
  ] as const)('an answer of %s that is none is told as that', async (hook) => {
    const asked: readonly PathInput[] = [
      ...ASKED,
      { type: 'request-fails', retryable: true },
      { type: 'error-handled' },
      { type: 'waited' },
      calls('lookup'),
      allowed,
      settled,
      ...LAST_STEP,
    ]
    for (const answer of [undefined, 'yes', { kind: 'maybe' }]) {
      // To these two, nothing is an answer.
      if (answer === undefined && (hook === 'agent/request-error' || hook === 'agent/turn-stopping')) continue
      const hooks = { [hook]: () => answer } as unknown as Partial<Hooks>
      await expect(playOn(lane, byHand('own hook', asked), { hooks })).rejects.toMatchObject({
        what: 'what the hooks may answer',
        actual: [expect.stringContaining(`Hook "${hook}": it `)],
      })
    }
  })

  test("a path's own verdict on a result comes before the user's hook", async () => {
    const judged: PathInput = { type: 'settled', ...first, outcome: 'ok', judged: 'block' }
    let asked = 0
    const played = await playOn(lane, byHand('own hook', [...ASKED, calls('lookup'), allowed, judged, ...LAST_STEP]), {
      hooks: {
        'tools/post-execute': (__, next) => {
          asked += 1
          return next()
        },
      },
    })
    expect(played.inputs).toContainEqual(judged)
    expect(asked).toBe(0)
  })
})

describe('what is not as the path says', () => {
  const path = byHand('one plain turn', [...ASKED, ...ANSWERED])

  test('an event is told with the inputs so far and the difference', async () => {
    const [last] = path.steps.slice(-1)
    const steps = [...path.steps.slice(0, -1), { ...last!, events: last!.events.slice(1) }]
    const thrown = await playOn(lane, { ...path, steps: [...steps] }).catch((error: unknown) => error)
    expect(thrown).toBeInstanceOf(PathMismatch)
    expect(thrown).toMatchObject({ label: 'one plain turn', step: 3, input: { type: 'stopping' } })
    expect((thrown as Error).message).toBe(
      [
        'one plain turn',
        '  {"type":"followup","id":"m1"}',
        '  {"type":"prepared","decision":"enter"}',
        '  {"type":"answered","finish":"stop","calls":[]}',
        '> {"type":"stopping","decision":"none"}',
        'the durable events differ (- expected, + actual):',
        '  + turn/end {"turn":1,"reason":{"kind":"completed"}}',
      ].join('\n'),
    )
  })

  test('an event that a crash takes back', async () => {
    const file = join(folder, 'forgets.db')
    let opened = 0
    const open = (): LogStore => {
      const store = sqliteStore(file)
      opened += 1
      return opened === 1 ? store : { ...store, read: (id, options) => withoutLast(store.read(id, options)) }
    }
    const crashing = byHand('crash', [...ASKED, crash, ...ANSWERED])
    await expect(playPath(crashing, { store: { open } })).rejects.toMatchObject({
      what: 'what was durable and the log',
    })
  })

  test('a rule of the log that is broken, at the input that broke it', async () => {
    const wrong = `sha256:${'0'.repeat(64)}`
    async function* misdigested(events: AsyncIterable<SessionEvent>): AsyncGenerator<SessionEvent> {
      for await (const event of events) {
        const isFirst = event.type === 'assistant/chunk' && event.data.request !== undefined
        yield isFirst ? { ...event, data: { ...event.data, request: wrong } } : event
      }
    }
    const open = (): LogStore => {
      const store = sqliteStore(join(folder, 'misdigested.db'))
      return { ...store, read: (id, options) => misdigested(store.read(id, options)) }
    }
    await expect(playPath(path, { store: { open } })).rejects.toMatchObject({
      what: 'the rules of the log and the log',
      step: 2,
      actual: [expect.stringContaining('REQUEST-DIGEST')],
    })
  })

  test('what is thrown, with its place on the path', async () => {
    const open = (): LogStore => {
      throw new Error('no store today')
    }
    await expect(playPath(path, { store: { open } })).rejects.toThrow('no store today')
    const impossible = { ...path, steps: path.steps.slice(1) }
    await expect(playOn(lane, impossible)).rejects.toMatchObject({
      what: 'what was thrown',
      step: 0,
      cause: { name: 'InputRefused' },
    })
  })

  test('a state', async () => {
    const steps = path.steps.map((step) => ({
      ...step,
      state: { ...step.state, context: { ...step.state.context, latch: true } },
    }))
    await expect(playOn(lane, { ...path, steps })).rejects.toMatchObject({
      what: 'the live state and the path',
      step: 0,
    })
  })
})

describe('what cannot be is told before anything is played', () => {
  const [path] = agentPaths({ extras: 0, tools: [] })
  const onPlayed = (): void => {}

  test.each([
    [{ lanes: 0, onPlayed }, 'lanes'],
    [{ abreast: Number.NaN, onPlayed }, 'abreast'],
  ])('%o plays nothing, and says so', async (options, option) => {
    await expect(playPaths([], options)).rejects.toThrow(option)
  })

  test.each([
    [{ patienceMs: 0 }, 'patienceMs'],
    [JSON.parse('{"agent":{"maxSteps":9}}'), 'agent.maxSteps'],
  ])('%o is refused', async (options, option) => {
    if (path === undefined) throw new Error('There is a path')
    await expect(playPath(path, options)).rejects.toThrow(InvalidOption)
    await expect(playPath(path, options)).rejects.toThrow(option)
  })

  test('what onPlayed throws is thrown once nobody plays any more', async () => {
    const told: string[] = []
    const playing = playPaths(agentPaths({ extras: 0, tools: [] }), {
      lanes: 1,
      onPlayed: ({ label }) => {
        told.push(label)
        throw new Error(`not what I want: ${label}`)
      },
    })
    await expect(playing).rejects.toThrow('not what I want')
    expect(told).toHaveLength(1)
  })
})
