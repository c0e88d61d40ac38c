/**
 * Paths through the agent's life, found by walking the chart: the shortest way to every state by every transition,
 * within a budget of what may happen, each carried on to rest.
 */
import { fromTransition } from 'xstate'
import { getShortestPaths } from 'xstate/graph'
import type { AgentContext, Call } from '../machines/evolve.ts'
import { isMessage } from '../machines/evolve.ts'
import { InvalidOption } from '../services/errors.ts'
import { affords, type Budget, charged, completeBudget, NOTHING_SPENT, type Spent } from './budget.ts'
import { applyInput, beginLoop } from './closed-loop.ts'
import type { LoopState } from './loop-state.ts'
import { inputsOf, type Vocabulary } from './offers.ts'
import type { AgentPath, PathEvent, PathSetup, PathStep } from './path.ts'
import type { PathInput } from './path-input.ts'
import { type AgentPathsOptions, checkCount, checkNames, setupOf, vocabularyOf } from './path-options.ts'
import { overdueCall, plainInput } from './waits.ts'
import { describePath, type Scene } from './words.ts'

/**
 * Paths over everything that can happen to an agent within the budget: people's commands, crashes, and what hooks, the
 * model and tools answer. Each is labelled in words and says, for each of its inputs, the exact durable events it must
 * bring about and the state it must lead to. Play them on a real agent with `playPath`.
 *
 * They are the shortest ways to every state of the chart by every transition into it; one that is the beginning of
 * another is left out; each is carried on to rest by the plainest answers. The same options give the same paths.
 * @throws InvalidOption for an option that cannot be, and when the search meets more than `limit` states
 */
export function agentPaths(options: AgentPathsOptions = {}): readonly AgentPath[] {
  checkNames(options)
  const { limit = 500_000 } = options
  checkCount('limit', limit, 1)
  const budget = completeBudget(options)
  const setup = setupOf(options, budget)
  const words = vocabularyOf(options, setup)
  const found = search({ setup, budget, words, limit })
  return wholePaths(setup, words, found)
}

// The search

interface Search {
  readonly setup: PathSetup
  readonly budget: Budget
  readonly words: Vocabulary
  readonly limit: number
}

interface Walk {
  readonly state: LoopState
  readonly spent: Spent
}

function search({ setup, budget, words, limit }: Search): readonly (readonly PathInput[])[] {
  const logic = fromTransition<Walk, PathInput, never, undefined>(step, {
    state: beginLoop(setup),
    spent: NOTHING_SPENT,
  })
  let looked = 0
  const inputsAt = ({ context: walk }: { readonly context: Walk }): PathInput[] => {
    looked += 1
    if (looked > limit) {
      throw new InvalidOption('limit', `${limit} states are not all: raise it, or let less happen on a path`)
    }
    return inputsOf(walk.state, walk.spent, budget, words).filter(affordable(budget, walk))
  }
  const paths = getShortestPaths(logic, {
    limit: Number.POSITIVE_INFINITY,
    events: inputsAt,
    serializeState: ({ context: walk }, input, before) =>
      input === undefined ? keyOf(walk) : `${keyOf(walk)} by ${JSON.stringify(input)} in ${placeOf(before?.context)}`,
    serializeEvent: (input) => JSON.stringify(input),
  })
  return paths.map(({ steps }) => steps.map(({ event }) => event).filter(isInput))
}

const isBegun = ({ state }: Walk): boolean => state.context.turn > 0

/** The first message opens the path; what comes after it is charged. */
const step = (walk: Walk, input: PathInput): Walk => ({
  state: applyInput(walk.state, input).state,
  spent: isBegun(walk) ? charged(walk.spent, input) : walk.spent,
})

const affordable = (budget: Budget, walk: Walk) => (input: PathInput) =>
  !isBegun(walk) || affords(budget, walk.spent, input)

/** A path begins with XState's own event. */
const isInput = (event: { readonly type: string }): event is PathInput => event.type !== 'xstate.init'

const placeOf = (walk: Walk | undefined): string => JSON.stringify(walk?.state.value)

/** What tells two states apart: all that decides what can happen next, and no more. */
function keyOf({ state, spent }: Walk): string {
  const { value, context, asked } = state
  const { turn, step, attempt, inbox, claimed, cancel, outcome, maxTokens, interrupted, retry } = context
  const { drain, latch, resumes, suspended } = context
  return JSON.stringify([
    [value, asked, Math.min(turn, 2), step, Math.min(attempt, 2), resumes],
    [
      inbox['next-turn'].map(itemKey),
      inbox['next-step'].map(itemKey),
      claimed.map(({ queue, item }) => queue + itemKey(item)),
    ],
    [context.calls.map(callKey), overdueCall(state)?.callId],
    [cancel, outcome?.kind, maxTokens, interrupted, retry?.retry, drain, latch, suspended],
    spent,
  ])
}

type Item = AgentContext['inbox']['next-turn'][number]

const itemKey = (item: Item): string => (isMessage(item) ? item.message.id.slice(0, 1) : 'result')

const callKey = ({ name, status, run, approval, onCrash, ...marks }: Call): string =>
  [
    name,
    status,
    run,
    approval?.purpose,
    onCrash,
    marks.concludes,
    marks.recovering,
    marks.synthetic,
    marks.forked,
  ].join()

// What becomes of the paths that were found

/** More than any path needs: each plain answer takes something off. */
const MAX_INPUTS = 500

/** A place on paths: what led there, and the places after it. Paths that begin alike share their beginnings. */
class Node {
  readonly before: Node | undefined
  readonly input: PathInput | undefined
  readonly state: LoopState
  readonly events: readonly PathEvent[]
  readonly #after = new Map<string, Node>()

  constructor(state: LoopState, events: readonly PathEvent[] = [], before?: Node, input?: PathInput) {
    this.state = state
    this.events = events
    this.before = before
    this.input = input
  }

  get isLast(): boolean {
    return this.#after.size === 0
  }

  after(input: PathInput): Node {
    const key = JSON.stringify(input)
    const known = this.#after.get(key)
    if (known !== undefined) return known
    const { state, events } = applyInput(this.state, input)
    const node = new Node(state, events, this, input)
    this.#after.set(key, node)
    return node
  }
}

/**
 * Each path carried on to rest, those left out that are the beginning of another. What an input brings about is told
 * along the very path: the search merges states that differ in what led to them.
 */
function wholePaths(
  setup: PathSetup,
  words: Vocabulary,
  found: readonly (readonly PathInput[])[],
): readonly AgentPath[] {
  const root = new Node(beginLoop(setup))
  const ends = new Set(
    found.map((inputs) =>
      carriedOn(
        inputs.reduce((node, input) => node.after(input), root),
        words,
      ),
    ),
  )
  const counts = new Map<string, number>()
  return [...ends]
    .filter((end) => end.isLast && end !== root)
    .map(nodesTo)
    .sort((a, b) => a.length - b.length)
    .map((nodes) => pathOf(setup, nodes, counts))
}

function carriedOn(found: Node, { verdicts }: Vocabulary): Node {
  let node = found
  for (let inputs = 0; ; inputs++) {
    const next = plainInput(node.state, verdicts)
    if (next === undefined) return node
    if (inputs > MAX_INPUTS) throw new Error(`A path never comes to rest: ${JSON.stringify(nodesTo(node))}`)
    node = node.after(next)
  }
}

/** Those that an input led to, from the first on. */
function nodesTo(end: Node): readonly Node[] {
  const nodes: Node[] = []
  for (let node: Node | undefined = end; node?.before !== undefined; node = node.before) nodes.push(node)
  return nodes.reverse()
}

function pathOf(setup: PathSetup, nodes: readonly Node[], counts: Map<string, number>): AgentPath {
  const steps: PathStep[] = []
  const scenes: Scene[] = []
  for (const { input, events, state, before } of nodes) {
    if (input === undefined || before === undefined) continue
    steps.push({ input, events, state: { value: state.value, context: state.context } })
    scenes.push({ input, before: before.state })
  }
  const ends = endsOf(steps.flatMap(({ events }) => events))
  return { label: numbered(describePath(scenes, ends), counts), setup, steps, ends }
}

const endsOf = (events: readonly PathEvent[]): readonly string[] =>
  events.flatMap((event) => (event.type === 'turn/end' ? [event.data.reason.kind] : []))

/** Two paths that differ only in what goes without saying get a number. */
function numbered(label: string, counts: Map<string, number>): string {
  const count = (counts.get(label) ?? 0) + 1
  counts.set(label, count)
  return count === 1 ? label : `${label} (${count})`
}
