/**
 * Paths through the agent's life, found by walking the chart: the shortest way to every state by every transition,
 * within a budget of what may happen, each carried on to rest.
 */
import { fromTransition } from 'xstate'
import { getShortestPaths } from 'xstate/graph'
import type { OnCrash, ToolMode } from '../log/events.ts'
import type { Json } from '../log/json.ts'
import type { AgentContext, Call } from '../machines/evolve.ts'
import { isMessage } from '../machines/evolve.ts'
import { InvalidOption } from '../services/errors.ts'
import type { Tool } from '../services/tools/contract.ts'
import { affords, type Budget, charged, completeBudget, NOTHING_SPENT, type Spent } from './budget.ts'
import { applyInput, beginLoop } from './closed-loop.ts'
import type { LoopState } from './loop-state.ts'
import { inputsOf, type Vocabulary } from './offers.ts'
import type { AgentPath, PathEvent, PathSetup, PathStep, PathTool } from './path.ts'
import type { PathInput } from './path-input.ts'
import { completeVerdicts, type HookVerdicts } from './verdicts.ts'
import { overdueCall, plainInput } from './waits.ts'
import { describePath, type Scene } from './words.ts'

/** A tool of one's own, and what the model of a path calls it with. */
export interface PathToolOptions {
  readonly tool: Tool
  /** {} by default. */
  readonly args?: Json
  /** Whether it asks for approval of those arguments; false by default. */
  readonly needsApproval?: boolean
}

/** Everything has a default. */
export interface AgentPathsOptions extends Partial<Budget> {
  /** 2. */
  readonly maxSteps?: number
  /** 2. */
  readonly maxParallelToolCalls?: number
  /** 3. */
  readonly maxResumes?: number
  /** By default four that do nothing, one of each kind of `onCrash`: `lookup`, `ship`, `charge`, `refund`. */
  readonly tools?: readonly (PathToolOptions | Tool | AbstractTool)[]
  /** The tools that an answer may ask for, by name; by default each alone, and the first two together. */
  readonly answers?: readonly (readonly string[])[]
  /** What each hook can decide; by default all it can. */
  readonly hooks?: Partial<HookVerdicts>
  /** How many states to look at before giving up; 500,000. */
  readonly limit?: number
}

/** A tool that is only its properties: the player makes one that does as the path says. */
export interface AbstractTool {
  readonly name: string
  /** 'exclusive' by default. */
  readonly mode?: ToolMode
  /** 'unknown' by default. */
  readonly onCrash?: OnCrash
  readonly needsApproval?: boolean
}

const DEFAULT_TOOLS: readonly AbstractTool[] = [
  { name: 'lookup', mode: 'parallel', onCrash: 'rerun' },
  { name: 'ship', mode: 'parallel', onCrash: 'probe' },
  { name: 'charge', mode: 'exclusive', onCrash: 'unknown' },
  { name: 'refund', mode: 'exclusive', onCrash: 'ask', needsApproval: true },
]

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
  const budget = completeBudget(options)
  const setup = setupOf(options, budget)
  const words = vocabularyOf(options, setup)
  const found = search({ setup, budget, words, limit: options.limit ?? 500_000 })
  return wholePaths(setup, words, found)
}

function setupOf(options: AgentPathsOptions, { retries }: Budget): PathSetup {
  const { maxSteps = 2, maxParallelToolCalls = 2, maxResumes = 3, tools = DEFAULT_TOOLS } = options
  for (const [name, value] of Object.entries({ maxSteps, maxParallelToolCalls })) {
    if (!Number.isSafeInteger(value) || value < 1) throw new InvalidOption(name, 'must be a whole number of at least 1')
  }
  return { maxSteps, maxParallelToolCalls, maxResumes, maxRetries: retries, tools: tools.map(pathTool) }
}

function pathTool(given: PathToolOptions | Tool | AbstractTool): PathTool {
  if ('execute' in given) return pathTool({ tool: given })
  if (!('tool' in given)) {
    const { name, mode = 'exclusive', onCrash = 'unknown', needsApproval = false } = given
    return { name, mode, onCrash, needsApproval, args: {} }
  }
  const { tool, args = {}, needsApproval = false } = given
  return { name: tool.name, mode: tool.modeOf(args), onCrash: tool.onCrash, needsApproval, args, tool }
}

/** A body that is real decides for itself. */
function vocabularyOf({ hooks = {}, answers }: AgentPathsOptions, { tools }: PathSetup): Vocabulary {
  const names = tools.map(({ name }) => name)
  const unknown = answers?.flat().find((name) => !names.includes(name))
  if (unknown !== undefined) throw new InvalidOption('answers', `there is no tool "${unknown}" among \`tools\``)
  const batches = answers ?? [...names.map((name) => [name]), ...(names.length > 1 ? [names.slice(0, 2)] : [])]
  const real = tools.some(({ tool }) => tool !== undefined)
  return {
    verdicts: completeVerdicts(hooks),
    batches,
    outcomes: real ? ['ok'] : ['ok', 'error', 'concludes', 'adds'],
  }
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
  const paths = getShortestPaths(logic, {
    limit,
    events: ({ context: walk }) => inputsOf(walk.state, walk.spent, budget, words).filter(affordable(budget, walk)),
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
