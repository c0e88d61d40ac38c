/** Paths are found by walking the chart: what they cover, what they are called, and that what they expect is sound. */
import { describe, expect, test } from 'vitest'
import { isMoving, type SessionEvent } from '../../src/log/events.ts'
import { createFold } from '../../src/machines/fold.ts'
import { InvalidOption } from '../../src/services/errors.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { allTransitions, applyInput, beginLoop } from '../../src/testing/closed-loop.ts'
import { InputRefused } from '../../src/testing/loop-state.ts'
import type { AgentPath } from '../../src/testing/path.ts'
import { agentPaths } from '../../src/testing/paths.ts'
import { waitsOf } from '../../src/testing/waits.ts'
import { audit } from '../kit/audit.ts'

const LOOKUP = { name: 'lookup', mode: 'parallel', onCrash: 'rerun' } as const
/** What these hooks decide is left to what it is about. */
const USUAL = { 'agent/request-error': ['policy'], 'tools/post-execute': ['accept'] } as const
const two = agentPaths({ tools: [LOOKUP], failures: 0, hooks: USUAL })
const HEEDS = { 'agent/pre-step': ['enter'], 'tools/pre-execute': ['allow'], 'agent/turn-stopping': ['none'] } as const
const inputsOf = ({ steps }: AgentPath) => steps.map(({ input }) => input)
const types = (path: AgentPath) => inputsOf(path).map(({ type }) => type)

/** The events of a path as a log. */
const logOf = ({ steps }: AgentPath): readonly SessionEvent[] =>
  steps.flatMap(({ events }) => events).map((event, seq) => ({ ...event, seq }) as SessionEvent)

describe('the paths', () => {
  test.each([
    'steer while the model is asked, then reject on step 2: blocked',
    'retry on step 1, then followup at rest: completed, completed',
    'retry on step 1, then crash while waiting to retry: completed',
    'cancel while the model speaks, then followup at rest: aborted, completed',
    'lookup on step 1, then cancel while lookup is executing, then nothing settles: aborted',
    'steer while the model is asked, then lookup on step 2: max-steps',
  ])('have "%s" among them', (label) => {
    expect(two.map((path) => path.label)).toContain(label)
  })

  test('go on being told apart when three things come together', () => {
    const labels = agentPaths({ extras: 3, tools: [], failures: 0, extraMessages: 0, hooks: USUAL }).map(
      ({ label }) => label,
    )
    expect(labels).toContain(
      'retry on step 1, then crash while waiting to retry, then cancel while waiting to retry: aborted',
    )
  })

  test('are the same each time, each with a label of its own, none the beginning of another', () => {
    const small = { extras: 1, tools: [LOOKUP, { name: 'charge' }] }
    const [once, again] = [agentPaths(small), agentPaths(small)]
    expect(again).toEqual(once)
    expect(new Set(once.map(({ label }) => label)).size).toBe(once.length)
    const texts = once.map((path) => JSON.stringify(inputsOf(path)).slice(1, -1))
    const beginnings = texts.filter((text) => texts.some((other) => other.startsWith(`${text},`)))
    expect(beginnings).toEqual([])
  })

  test('come to rest, with nothing asked that was not answered', () => {
    for (const { steps } of two) expect(steps.at(-1)?.state.value).toBe('idle')
  })

  test('stay within their budget', () => {
    const none = agentPaths({ crashes: 0, cancels: 0, extraMessages: 0, tools: [LOOKUP], hooks: USUAL })
    expect(none.length).toBeGreaterThan(0)
    const disturbed = none.filter((path) => types(path).some((type) => type === 'crash' || type === 'cancel'))
    expect(disturbed).toEqual([])
    const extras = two.map(
      (path) =>
        types(path).filter((type) => ['crash', 'cancel', 'steer', 'followup', 'inject', 'request-fails'].includes(type))
          .length,
    )
    // The message that opens the first turn is not counted.
    expect(Math.max(...extras)).toBe(3)
  })

  test('expect logs that fold to the state they expect, step by step', () => {
    for (const path of two) {
      const folded = createFold()
      let seq = 0
      for (const { events, state } of path.steps) {
        for (const event of events) folded.push({ ...event, seq: seq++ } as SessionEvent)
        const { value, context } = folded.snapshot()
        expect({ value, context }).toEqual(state)
      }
    }
  })

  test('expect logs in which an audit that does not know the chart finds nothing', () => {
    for (const path of two)
      expect({ path: path.label, found: audit(logOf(path), { done: true }).violations }).toEqual({
        path: path.label,
        found: [],
      })
  })

  test('take every transition of the chart that these disturbances can bring about', () => {
    const taken = new Set<string>()
    for (const path of two) {
      inputsOf(path).reduce(
        (state, input) => applyInput(state, input, (name) => taken.add(name)).state,
        beginLoop(path.setup),
      )
    }
    const known = new Set(allTransitions())
    expect([...taken].filter((name) => !known.has(name))).toEqual([])
    expect(taken.size).toBeGreaterThan(60)
  })
})

describe('the search', () => {
  test('tries of a hook what it is said to decide, and no more', () => {
    const paths = agentPaths({
      extras: 0,
      tools: [],
      hooks: { 'agent/pre-step': ['enter'], 'agent/turn-stopping': ['none'] },
    })
    expect(paths.map(({ label }) => label)).toEqual([
      'one plain turn: completed',
      'max-tokens on step 1: max-tokens',
      // The same, in two parts.
      'one plain turn: completed (2)',
      'max-tokens on step 1: max-tokens (2)',
    ])
  })

  test.each([
    [{ 'agent/pre-step': ['reject'] }, 'prepared', 'prepared reject'],
    [{ 'agent/turn-stopping': ['stop'] }, 'stopping', 'stopping stop'],
    [{ 'tools/pre-execute': ['deny'] }, 'allowed|denied|asked', 'denied'],
    [{ 'tools/pre-execute': ['ask'] }, 'allowed|denied|asked', 'asked'],
  ] as const)('carries paths on within what hooks can decide: %o', (hooks, types, verdict) => {
    const tools = [LOOKUP, { name: 'refund', needsApproval: true }]
    const decided = agentPaths({ extras: 1, approvals: 2, tools, hooks })
      .flatMap(inputsOf)
      .filter(({ type }) => types.split('|').includes(type))
      .map((input) => ('decision' in input ? `${input.type} ${input.decision}` : input.type))
    expect(new Set(decided)).toEqual(new Set([verdict]))
  })

  test('lets a hook judge a failure as it can: the policy goes on, gives up, or is not asked', () => {
    const labels = (verdict: 'policy' | 'retry' | 'give-up' | 'fail') =>
      agentPaths({
        extras: 2,
        tools: [],
        crashes: 0,
        cancels: 0,
        extraMessages: 0,
        hooks: { ...HEEDS, 'agent/request-error': [verdict] },
      })
        .map(({ label }) => label)
        .filter((label) => label.startsWith('failed request') || label.startsWith('retry'))
    const { '0': once = '' } = labels('give-up')
    expect(labels('policy')).toContain('failed request on step 1: error')
    expect(labels('policy')).toContain('retry on step 1: completed')
    expect(labels('retry')).toContain('failed request on step 1, then tried again by a hook: completed')
    expect(labels('retry')).toContain('retry on step 1, then tried again by a hook: completed')
    expect(once).toBe('retry on step 1, then given up by a hook: error')
    expect(labels('fail')).toContain('retry on step 1, then a hook throws: error')
  })

  test('lets a hook take a result back: a blocked one adds nothing, and concludes nothing', () => {
    const labels = (verdict: 'accept' | 'block' | 'fail') =>
      agentPaths({
        extras: 1,
        extraMessages: 0,
        tools: [LOOKUP],
        crashes: 0,
        cancels: 0,
        hooks: { ...HEEDS, 'tools/post-execute': [verdict] },
      }).map(({ label }) => label)
    expect(labels('accept')).toContain('lookup on step 1, then lookup concludes the turn: completed')
    expect(labels('block')).toContain('lookup on step 1, then lookup blocked: completed')
    expect(labels('fail')).toContain('lookup on step 1, then lookup fails by a hook that throws: completed')
  })

  test('asks for the tools that it is given, with their arguments, as they classify themselves', () => {
    const weigh = tool({
      name: 'weigh',
      description: 'Weighs',
      parameters: { type: 'object' },
      mode: (args: unknown) => (JSON.stringify(args) === '{"kg":1}' ? 'parallel' : 'exclusive'),
      onCrash: 'rerun',
      execute: () => 'done',
    })
    const [path] = agentPaths({ extras: 0, tools: [{ tool: weigh, args: { kg: 1 } }] })
    expect(path?.setup.tools).toEqual([
      { name: 'weigh', mode: 'parallel', onCrash: 'rerun', needsApproval: false, args: { kg: 1 }, tool: weigh },
    ])
  })

  test.each([
    [{ maxSteps: 0 }, 'maxSteps'],
    [{ crashes: -1 }, 'crashes'],
    [{ extras: 1.5 }, 'extras'],
    [{ answers: [['nothing']] }, 'answers'],
    [{ answers: [[]] }, '1 to 8 tools'],
    [{ answers: [Array.from({ length: 129 }, () => 'lookup')] }, '1 to 8 tools'],
    [{ limit: Number.NaN }, 'limit'],
    [{ limit: 3 }, '3 states are not all'],
    [{ maxResumes: -1 }, 'maxResumes'],
    [JSON.parse('{"cancel":3}'), 'cancel'],
    [JSON.parse('{"hooks":{"agent/pre-step":["nope"]}}'), 'nope'],
    [JSON.parse('{"hooks":{"agent/pre":["enter"]}}'), 'agent/pre'],
    [{ tools: [{ name: 'lookup' }, { name: 'lookup' }] }, 'two tools named "lookup"'],
    [JSON.parse('{"tools":[{"name":"lookup","onCrash":"again"}]}'), 'onCrash of "lookup"'],
    [JSON.parse('{"tools":[{"name":"lookup","mode":"both"}]}'), '"lookup" must be parallel or exclusive'],
    [{ tools: [{ name: '' }] }, 'name'],
    [{ hooks: { 'agent/pre-step': [] } }, 'hooks'],
  ])('refuses %o', (options, option) => {
    expect(() => agentPaths(options)).toThrow(InvalidOption)
    expect(() => agentPaths(options)).toThrow(option)
  })
})

describe('the closed loop', () => {
  const setup = { maxSteps: 2, maxParallelToolCalls: 2, maxRetries: 1, maxResumes: 3, tools: [] }
  const started = applyInput(beginLoop(setup), { type: 'followup', id: 'm1' })

  test('tells what an input records and all that follows from it', () => {
    expect(started.events.map(({ type }) => type)).toEqual(['agent/inbox/spliced', 'turn/start', 'agent/inbox/spliced'])
    expect(started.events.every((event) => isMoving(event as SessionEvent))).toBe(true)
    expect(waitsOf(started.state)).toEqual(['pre-step 1.1'])
  })

  test('refuses an input that nothing waits for', () => {
    const refused = () => applyInput(started.state, { type: 'waited' })
    expect(refused).toThrow(InputRefused)
    expect(refused).toThrow('Nothing waits for {"type":"waited"}')
  })
})
