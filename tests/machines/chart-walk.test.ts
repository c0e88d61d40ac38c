/** The rules that make a log fold to the live state, held against the machine's definition rather than its behaviour. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { type AnyStateMachine, assign, createMachine, enqueueActions, fromCallback, setup } from 'xstate'
import { MOVING } from '../../src/log/events.ts'
import { agentMachine } from '../../src/machines/agent.ts'
import { provideEffects } from '../../src/machines/live.ts'

type Node = AnyStateMachine['root']

/** What every state in which a log may be left has to answer. */
const ANSWERED_AT_REST = ['turn/cancel', 'session/resumed'] as const

/** `idle` is asked neither; the other two exist only inside a macrostep. */
const EXEMPT: ReadonlySet<string> = new Set(['agent.idle', 'agent.turnOpen', 'agent.stepClosed'])

/** Everything in a machine's definition that breaks a rule; empty for a good one. */
function flawsOf(machine: AnyStateMachine): readonly string[] {
  return [...nodesUnder(machine.root).flatMap((node) => flawsAt(machine, node)), ...flawsOfImplementations(machine)]
}

const nodesUnder = (node: Node): readonly Node[] => [node, ...Object.values(node.states).flatMap(nodesUnder)]

function flawsAt(machine: AnyStateMachine, node: Node): readonly string[] {
  const kindsOf = (actions: readonly unknown[]) => actions.map((action) => kindOf(machine, action))
  const transitions = [...node.transitions].flatMap(([event, candidates]) =>
    candidates.flatMap((candidate) =>
      flawsOfTransition(event, candidate.target !== undefined, kindsOf(candidate.actions)).map(
        (flaw) => `${node.id} on ${event}: ${flaw}`,
      ),
    ),
  )
  const bodies = kindsOf([...node.entry, ...node.exit])
  return [
    ...transitions,
    ...flawsOfState(node).map((flaw) => `${node.id}: ${flaw}`),
    ...(kindsOf(node.exit).includes('record') ? [`${node.id}: records on exit`] : []),
    ...(bodies.includes('xstate.enqueueActions') ? [`${node.id}: enqueues actions`] : []),
  ]
}

/** `record`, a builtin's own type, or `custom`; names are looked up where the machine keeps them. */
function kindOf(machine: AnyStateMachine, action: unknown): string {
  if (typeof action === 'function') return 'type' in action ? String(action.type) : 'custom'
  const name = typeof action === 'object' && action !== null && 'type' in action ? String(action.type) : String(action)
  return name === 'record' ? name : kindOf(machine, machine.implementations.actions[name] ?? (() => {}))
}

function flawsOfTransition(event: string, moves: boolean, kinds: readonly string[]): readonly string[] {
  const flaws: string[] = []
  if (kinds.includes('xstate.enqueueActions')) flaws.push('enqueues actions')
  if (event === '*') flaws.push('takes durable events and others alike')
  if (MOVING.has(event)) {
    if (kinds.includes('record') && event !== 'session/resumed') flaws.push('a durable event records')
    return flaws
  }
  if (moves) flaws.push('moves without a durable event')
  if (kinds.includes('xstate.assign')) flaws.push('changes context without a durable event')
  if (kinds.some((kind) => kind !== 'record' && kind !== 'xstate.assign')) flaws.push('does more than record')
  return flaws
}

function flawsOfState(node: Node): readonly string[] {
  const flaws: string[] = []
  if ((node.always ?? []).length > 0) flaws.push('moves by itself')
  if (node.after.length > 0) flaws.push('moves after a delay')
  if (node.invoke.some(({ systemId }) => systemId !== undefined)) flaws.push('names an actor for the whole system')
  for (const event of ANSWERED_AT_REST) {
    if (node.parent === undefined && node.transitions.has(event)) flaws.push(`answers ${event} for every state`)
    if (isAtRest(node) && !answers(node, event)) flaws.push(`forgets ${event}`)
  }
  return flaws
}

const isAtRest = (node: Node): boolean =>
  node.parent !== undefined && Object.keys(node.states).length === 0 && !EXEMPT.has(node.id)

/** The state itself, or one around it that is not the root, has a transition that no guard can refuse. */
function answers(node: Node, event: string): boolean {
  if (node.parent === undefined) return false
  const candidates = node.transitions.get(event) ?? []
  return candidates.some(({ guard }) => guard === undefined) || answers(node.parent, event)
}

const flawsOfImplementations = (machine: AnyStateMachine): readonly string[] =>
  Object.keys(machine.implementations.actions)
    .filter((name) => kindOf(machine, name) === 'xstate.enqueueActions')
    .map((name) => `${name}: enqueues actions`)

const nothing = fromCallback(() => {})
const live = provideEffects(() => {
  throw new Error('Nothing runs here')
}, {})

describe('the chart', () => {
  test('moves by durable events alone, and nothing it does escapes the log', () => {
    expect(flawsOf(agentMachine)).toEqual([])
  })

  test('keeps every rule with its effects provided', () => {
    expect(flawsOf(live)).toEqual([])
  })

  test('has the states that the log may be left in', () => {
    const leaves = nodesUnder(agentMachine.root).filter((node) => Object.keys(node.states).length === 0)
    expect(leaves.map(({ id }) => id).sort()).toEqual([
      'agent.idle',
      'agent.preStep',
      'agent.stepClosed',
      'agent.stepRequest.streaming',
      'agent.stepRequest.waiting',
      'agent.toolExec',
      'agent.turnOpen',
      'agent.turnStopping',
    ])
  })

  test('enqueues actions in one place, and names no actor for the whole system', () => {
    const folder = new URL('../../src/machines/', import.meta.url)
    const files = readdirSync(folder).map((name) => ({ name, text: readFileSync(new URL(name, folder), 'utf8') }))
    const places = files.flatMap(({ name, text }) => [...text.matchAll(/\benqueueActions\(/g)].map(() => name))
    expect(places).toEqual(['live.ts'])
    expect(files.filter(({ text }) => /\bsystemId\b/.test(text)).map(({ name }) => name)).toEqual([])
  })
})

/** A state that answers both at rest, for machines that are broken elsewhere. */
const atRest = { 'turn/cancel': {}, 'session/resumed': {} }
const record = { type: 'record', params: {} }
const machineWith = (state: object, root: object = {}): AnyStateMachine =>
  createMachine({ id: 'agent', initial: 'some', states: { some: state, other: { on: atRest } }, ...root })

describe('the walk', () => {
  test('finds nothing wrong with a good machine', () => {
    const on = { ...atRest, 'command.steer': { actions: record }, 'turn/end': { target: 'other', actions: assign({}) } }
    expect(flawsOf(machineWith({ entry: record, on }))).toEqual([])
  })

  test.each([
    ['command.steer', { target: 'other' }, 'moves without a durable event'],
    ['verdict.waited', { actions: assign({}) }, 'changes context without a durable event'],
    ['verdict.waited', { actions: [record, assign({})] }, 'changes context without a durable event'],
    ['xstate.error.actor.x', { target: 'other', actions: record }, 'moves without a durable event'],
    ['command.steer', { actions: () => {} }, 'does more than record'],
    ['step/start', { target: 'other', actions: record }, 'a durable event records'],
    ['step/start', { actions: [assign({}), record] }, 'a durable event records'],
    ['verdict.waited', { actions: enqueueActions(() => {}) }, 'enqueues actions'],
    ['*', {}, 'takes durable events and others alike'],
  ])('sees what is wrong with %s', (event, transition, flaw) => {
    const flaws = flawsOf(machineWith({ on: { ...atRest, [event]: transition } }))
    expect(flaws).toContain(`agent.some on ${event}: ${flaw}`)
  })

  test('sees an assign behind a name', () => {
    const machine = setup({ actions: { apply: assign({}) } }).createMachine({
      id: 'agent',
      on: { 'command.steer': { actions: 'apply' } },
    })
    expect(flawsOf(machine)).toEqual(['agent on command.steer: changes context without a durable event'])
  })

  test('sees a second place that enqueues actions, behind a name or in a state', () => {
    const named = setup({
      actions: { record: enqueueActions(() => {}), more: enqueueActions(() => {}) },
    }).createMachine({})
    expect(flawsOf(named)).toEqual(['more: enqueues actions'])
    expect(flawsOf(machineWith({ on: atRest, entry: enqueueActions(() => {}) }))).toEqual([
      'agent.some: enqueues actions',
    ])
  })

  test.each(ANSWERED_AT_REST)('sees a state that forgets %s', (event) => {
    const { [event]: _, ...rest } = atRest
    expect(flawsOf(machineWith({ on: rest }))).toEqual([`agent.some: forgets ${event}`])
  })

  test('sees a state that answers only under a guard', () => {
    const guarded = { ...atRest, 'session/resumed': { guard: () => false } }
    expect(flawsOf(machineWith({ on: guarded }))).toEqual(['agent.some: forgets session/resumed'])
  })

  test('takes the answer of a state around, but not that of the root', () => {
    const inner = { initial: 'leaf', states: { leaf: {} } }
    expect(flawsOf(machineWith({ ...inner, on: atRest }))).toEqual([])
    expect(flawsOf(machineWith({}, { on: atRest }))).toEqual(
      expect.arrayContaining(['agent: answers turn/cancel for every state', 'agent.some: forgets turn/cancel']),
    )
  })

  test('sees what moves by itself, after a delay, on exit, or is named for the whole system', () => {
    expect(flawsOf(machineWith({ on: atRest, always: 'other' }))).toContain('agent.some: moves by itself')
    expect(flawsOf(machineWith({ on: atRest, after: { 5: 'other' } }))).toContain('agent.some: moves after a delay')
    expect(flawsOf(machineWith({ on: atRest, exit: record }))).toContain('agent.some: records on exit')
    expect(flawsOf(machineWith({ on: atRest, invoke: { src: nothing, systemId: 'x' } }))).toContain(
      'agent.some: names an actor for the whole system',
    )
  })
})
