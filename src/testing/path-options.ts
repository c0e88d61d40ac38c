/** The options of `agentPaths`, checked once and made complete: a slip would silently cover less than was meant. */
import type { OnCrash, ToolMode } from '../log/events.ts'
import type { Json } from '../log/json.ts'
import { InvalidOption } from '../services/errors.ts'
import type { Tool } from '../services/tools/contract.ts'
import { BUDGETS, type Budget } from './budget.ts'
import type { Vocabulary } from './offers.ts'
import type { PathSetup, PathTool } from './path.ts'
import { completeVerdicts, type HookVerdicts } from './verdicts.ts'

/** A tool of one's own, and what the model of a path calls it with. Its `timeoutMs` is left out: time is the path's. */
export interface PathToolOptions {
  readonly tool: Tool
  /** {} by default. */
  readonly args?: Json
  /** Whether it asks for approval of those arguments; false by default. */
  readonly needsApproval?: boolean
}

/** A tool that is only its properties: the player makes one that does as the path says. */
export interface AbstractTool {
  readonly name: string
  /** 'exclusive' by default. */
  readonly mode?: ToolMode
  /** 'unknown' by default. */
  readonly onCrash?: OnCrash
  /** Whether it asks for approval; false by default. */
  readonly needsApproval?: boolean
}

/** Everything has a default. */
export interface AgentPathsOptions extends Partial<Budget> {
  /** 2. A path has more steps with tools than one only if `toolSteps` allows them. */
  readonly maxSteps?: number
  /** 2. */
  readonly maxParallelToolCalls?: number
  /** 3. */
  readonly maxResumes?: number
  /**
   * By default four that do nothing, one of each kind of `onCrash`: `lookup`, `ship`, `charge`, `refund`. With a real one
   * among them, what each body does is left to the bodies.
   */
  readonly tools?: readonly (PathToolOptions | Tool | AbstractTool)[]
  /** The tools that an answer may ask for, by name, 8 at most; by default each alone, and the first two together. */
  readonly answers?: readonly (readonly string[])[]
  /** What each hook can decide; by default all it can. One that decides something else when played is followed. */
  readonly hooks?: Partial<HookVerdicts>
  /** How many states to look at before giving up; 500,000. */
  readonly limit?: number
}

const DEFAULT_TOOLS: readonly AbstractTool[] = [
  { name: 'lookup', mode: 'parallel', onCrash: 'rerun' },
  { name: 'ship', mode: 'parallel', onCrash: 'probe' },
  { name: 'charge', mode: 'exclusive', onCrash: 'unknown' },
  { name: 'refund', mode: 'exclusive', onCrash: 'ask', needsApproval: true },
]

const OTHERS = ['maxSteps', 'maxParallelToolCalls', 'maxResumes', 'tools', 'answers', 'hooks', 'limit'] as const

/** @throws InvalidOption for a name that is none */
export function checkNames(options: AgentPathsOptions): void {
  const known: readonly string[] = [...BUDGETS, ...OTHERS]
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) throw new InvalidOption(name, `is no option: they are ${known.join(', ')}`)
  }
}

/** @throws InvalidOption for what is no whole number of at least `least` */
export function checkCount(name: string, value: number, least: number): void {
  if (!Number.isSafeInteger(value) || value < least) {
    throw new InvalidOption(name, `must be a whole number of at least ${least}`)
  }
}

/** @throws InvalidOption */
export function setupOf(options: AgentPathsOptions, { retries }: Budget): PathSetup {
  const { maxSteps = 2, maxParallelToolCalls = 2, maxResumes = 3, tools = DEFAULT_TOOLS } = options
  checkCount('maxSteps', maxSteps, 1)
  checkCount('maxParallelToolCalls', maxParallelToolCalls, 1)
  checkCount('maxResumes', maxResumes, 0)
  const complete = tools.map(pathTool)
  const twice = complete.find(({ name }, index) => complete.findIndex((other) => other.name === name) < index)
  if (twice !== undefined) throw new InvalidOption('tools', `there are two tools named "${twice.name}"`)
  return { maxSteps, maxParallelToolCalls, maxResumes, maxRetries: retries, tools: complete }
}

const MODES: readonly ToolMode[] = ['parallel', 'exclusive']
const ON_CRASH: readonly OnCrash[] = ['unknown', 'rerun', 'ask', 'probe']

function pathTool(given: PathToolOptions | Tool | AbstractTool): PathTool {
  if ('execute' in given) return pathTool({ tool: given })
  if ('tool' in given) {
    const { tool, args = {}, needsApproval = false } = given
    return { name: tool.name, mode: tool.modeOf(args), onCrash: tool.onCrash, needsApproval, args, tool }
  }
  const { name, mode = 'exclusive', onCrash = 'unknown', needsApproval = false } = given
  if (typeof name !== 'string' || name === '') throw new InvalidOption('tools', 'each must have a name')
  if (!MODES.includes(mode)) throw new InvalidOption('tools', `"${name}" must be ${MODES.join(' or ')}`)
  if (!ON_CRASH.includes(onCrash))
    throw new InvalidOption('tools', `onCrash of "${name}" must be ${ON_CRASH.join(', ')}`)
  return { name, mode, onCrash, needsApproval, args: {} }
}

/** More calls than this in one answer have more orders of events than can be walked. */
const MAX_CALLS = 8

/** @throws InvalidOption */
export function vocabularyOf({ hooks = {}, answers }: AgentPathsOptions, { tools }: PathSetup): Vocabulary {
  const names = tools.map(({ name }) => name)
  for (const answer of answers ?? []) {
    if (answer.length === 0 || answer.length > MAX_CALLS) {
      throw new InvalidOption('answers', `each must ask for 1 to ${MAX_CALLS} tools; for none, give no answers`)
    }
    const unknown = answer.find((name) => !names.includes(name))
    if (unknown !== undefined) throw new InvalidOption('answers', `there is no tool "${unknown}" among \`tools\``)
  }
  const batches = answers ?? [...names.map((name) => [name]), ...(names.length > 1 ? [names.slice(0, 2)] : [])]
  // A body that is real decides for itself.
  const real = tools.some(({ tool }) => tool !== undefined)
  return {
    verdicts: completeVerdicts(hooks),
    batches,
    outcomes: real ? ['ok'] : ['ok', 'error', 'concludes', 'adds'],
  }
}
