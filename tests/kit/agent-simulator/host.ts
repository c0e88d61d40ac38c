/** An agent in a process of the world: how it is opened, watched while it lives, and what became of its opening. */
import { createUnlessAborted } from '../../../src/agent/create.ts'
import type { Agent, AgentOptions } from '../../../src/agent.ts'
import { PawlError } from '../../../src/log/errors.ts'
import type { SessionEvent } from '../../../src/log/events.ts'
import { type FoldCheck, watchFold } from './fold-check.ts'
import { simulatedHooks } from './hooks.ts'
import type { Truth } from './mirror.ts'
import { simulatedModel } from './model.ts'
import { simulatedTools } from './tools.ts'
import { type StoreFaults, wire } from './wire.ts'
import type { SimProcess } from './world.ts'

export type HostState = 'opening' | 'open' | 'closing' | 'over'

export class Host {
  readonly process: SimProcess
  readonly sessionId: string
  state: HostState = 'opening'
  agent: Agent | undefined
  /** The next seq when it was opened. */
  opened = 0
  /** Somebody took the session; an idle agent does not notice. */
  robbed = false
  foldCheck: FoldCheck | undefined

  constructor(process: SimProcess, sessionId: string) {
    this.process = process
    this.sessionId = sessionId
  }

  get name(): string {
    return `${this.sessionId}@${this.process.name}`
  }

  /** The agent, if it takes commands. */
  get living(): Agent | undefined {
    const lives = this.process.alive && this.state === 'open'
    const over = this.agent?.status === 'failed' || this.agent?.status === 'closed'
    return lives && !over ? this.agent : undefined
  }
}

export interface Opening {
  readonly steal: boolean
  readonly faults: StoreFaults
  /** A folder for what a failing store did not take. */
  readonly unsaved: string | undefined
}

/** Errors that opening may end with in a world like this one. */
const EXPECTED = ['SESSION_BUSY', 'STORE_FAILURE', 'FENCED', 'SEQ_CONFLICT', 'SESSION_NOT_FOUND', 'AGENT_CLOSED']

/** Begins to open a session in a process; what comes of it stands in the host. Runs within a step of that process. */
export function openHost(truth: Truth, process: SimProcess, sessionId: string, opening: Opening): Host {
  const { world } = truth
  const host = new Host(process, sessionId)
  const options = { ...drawnOptions(truth, process), ...served(truth, host, opening) }
  createUnlessAborted(options, { onReached: (live) => host.foldCheck?.onReached(live) }).then(
    (agent) => {
      host.agent = agent
      host.opened = agent.session.head
      host.state = agent.status === 'failed' || agent.status === 'closed' ? 'over' : 'open'
      world.count('openings')
    },
    (error: unknown) => {
      host.state = 'over'
      const code = error instanceof PawlError ? error.code : String(error)
      world.tell(`${host.name} is not opened: ${code}`)
      world.count(`not opened ${code}`)
      // A fork whose process died while it was made is refused, and is to be deleted.
      const cut = error instanceof PawlError && 'rule' in error && error.rule === 'SEED'
      if (cut) truth.cutOff.add(sessionId)
      world.must(cut || EXPECTED.includes(code), 'OPENING', () => `${host.name}: ${String(error)}`)
    },
  )
  return host
}

/** What is drawn for each opening: a log must be carried on under other options too. */
function drawnOptions({ world: { tape, calm } }: Truth, process: SimProcess): Partial<AgentOptions> {
  if (calm) return { maxSteps: 3 }
  return {
    maxSteps: 3,
    maxParallelToolCalls: tape.pick([10, 1, 2]),
    maxResumes: tape.pick([3, 3, 1]),
    recovery: tape.chance(0.2) ? 'interrupt' : 'continue',
    ...(tape.chance(0.1) ? { limits: { turn: tape.pick([{ tokens: 25 }, { timeMs: 3_000 }]) } } : {}),
    ...(tape.chance(0.04) ? { limits: { session: { tokens: 100 } } } : {}),
    ...(tape.chance(0.2) ? { retry: tape.pick([{ mode: 'always' } as const, { maxRetries: 1 }]) } : {}),
    ...(tape.chance(0.2) ? { context: [{ name: 'who', text: `You run in ${process.name}` }] } : {}),
    ...(tape.chance(0.2) ? { settleTimeoutMs: 100 } : {}),
    ...(tape.chance(0.1) ? { repeatedCalls: { warnAfter: 1, stopAfter: 2 } } : {}),
  }
}

function served(truth: Truth, host: Host, { steal, faults, unsaved }: Opening): AgentOptions {
  const { world } = truth
  const { process, sessionId } = host
  return {
    model: simulatedModel(truth, process),
    tools: simulatedTools(truth, process),
    hooks: simulatedHooks(truth, process),
    store: wire(truth, process, faults, (id) => {
      host.robbed ||= id === sessionId
    }),
    sessionId,
    ...(steal ? { steal } : {}),
    ...(unsaved === undefined ? {} : { fallbackDir: unsaved }),
    system: 'You are simulated',
    clock: world.clock.of(process),
    random: () => world.tape.draw(),
    newId: () => world.id('id'),
    plugins: [(agent) => watch(truth, host, agent)],
  }
}

function watch(truth: Truth, host: Host, agent: Agent): void {
  const { world } = truth
  const loaded = truth.sessions.get(agent.id)?.log.slice(0, agent.session.head) ?? []
  host.foldCheck = watchFold(world, agent, loaded)
  const saw = (event: SessionEvent): void => truth.saw(host.process, agent.id, event, 'events$')
  if (world.tape.chance(0.3)) agent.session.events$.subscribe({ next: saw, error: () => {} })
  if (!world.calm && world.tape.chance(0.15)) observe(truth, agent)
}

/** An observer that gives commands, and now and then throws. */
function observe({ world }: Truth, agent: Agent): void {
  agent.on('session/event', ({ type }) => {
    if (world.calm || !world.tape.chance(0.04)) return
    const does = world.tape.pick(['steer', 'followup', 'cancel', 'close', 'throw', 'clear'] as const)
    world.count(`observer ${does}`)
    world.tell(`  an observer of ${agent.id} at ${type}: ${does}`)
    if (does === 'throw') throw new Error('An observer threw')
    if (does === 'cancel') agent.cancel().catch(() => {})
    else if (does === 'close') agent.close().catch(() => {})
    else if (does === 'clear') agent.inbox.clear()
    else agent[does](`${does} of an observer`)
  })
}
