/** The server, the clock and the agents of one conversation file. */
import type { AgentOptions } from '../../../src/agent.ts'
import type { SessionEvent } from '../../../src/log/events.ts'
import type { Json } from '../../../src/log/json.ts'
import type { LogStore } from '../../../src/log/store.ts'
import { memoryStore } from '../../../src/log/stores/memory.ts'
import type { Tool } from '../../../src/services/tools/contract.ts'
import { tool } from '../../../src/services/tools/tool.ts'
import { type StartedAgent, startAgent, stored } from '../agents.ts'
import { type ManualClock, manualClock } from '../manual-clock.ts'
import { createRandom } from '../simulator/random.ts'
import { type Reply, type WireServer, wireServer } from '../wire-server.ts'
import type { ConversationFile, CorpusReply, CorpusTool } from './format.ts'
import { adapterFor } from './make-adapter.ts'
import { difference } from './match.ts'
import { packetsOf } from './packets.ts'
import { stepOf } from './steps.ts'
import { unsendable } from './wire-history.ts'

/** One agent of a conversation; `started` while its process lives. */
export interface Actor {
  store: LogStore
  started: StartedAgent | undefined
  readonly sessionId: string
  readonly random: () => number
  /** Text as an observer is told it, with the attempt it belongs to. */
  readonly told: string[]
  /** How often the body of each call began. */
  readonly runs: Map<string, number>
  /** Somebody changed its log. */
  damaged: boolean
}

export interface Stage extends AsyncDisposable {
  readonly file: ConversationFile
  readonly clock: ManualClock
  readonly server: WireServer
  readonly actors: readonly Actor[]
  /** What was wrong with the requests that came. */
  readonly complaints: readonly string[]
  /** Opens an actor's session, again if need be. */
  open(actor: Actor): Promise<void>
}

const NOW = '2026-10-21T07:00:00Z'

/** A stage with its server running and nobody on it yet. */
export async function stageOf(file: ConversationFile): Promise<Stage> {
  const complaints: string[] = []
  const replies = repliesOf(file)
  const server = await wireServer((request, n) => {
    const wrong = unsendable(request.body)
    if (wrong !== undefined) complaints.push(`request ${n}: no server takes it: ${wrong}`)
    const planned = replies(n)
    if (planned === undefined) return { status: 599 }
    const found = planned.request && difference(planned.request, request.body)
    if (found !== undefined) complaints.push(`request ${n}${found}`)
    return replyOf(planned.reply)
  })
  const clock = manualClock(Date.parse(file.now ?? NOW))
  const actors = Array.from({ length: file.agents ?? 1 }, (_, i) => actorOf(i))
  return {
    file,
    clock,
    server,
    actors,
    complaints,
    async open(actor) {
      const again = actor.started !== undefined || (await stored(actor.store, actor.sessionId)).length > 0
      actor.started = await startAgent({ ...optionsOf(file, { actor, clock, url: server.url }), steal: again })
    },
    [Symbol.asyncDispose]: () => server.close(),
  }
}

const actorOf = (i: number): Actor => ({
  store: memoryStore(),
  started: undefined,
  sessionId: `session-${i}`,
  random: createRandom(i + 1).draw,
  told: [],
  runs: new Map(),
  damaged: false,
})

type Exchange = ConversationFile['exchanges'][number]

function repliesOf({ exchanges }: ConversationFile): (n: number) => Exchange | undefined {
  return (n) => {
    let left = n
    return exchanges.find(({ times = 1 }) => {
      left -= times
      return left < 0
    })
  }
}

function replyOf(reply: CorpusReply): Reply {
  const { status, headers } = reply
  return { body: packetsOf(reply).map(stepOf), ...(status && { status }), ...(headers && { headers }) }
}

interface Place {
  readonly actor: Actor
  readonly clock: ManualClock
  readonly url: string
}

function optionsOf(file: ConversationFile, { actor, clock, url }: Place): Partial<AgentOptions> {
  const { adapter = {}, fallback, options = {}, tools = [] } = file
  const model = adapterFor(adapter, { baseURL: url, clock })
  return {
    model,
    clock,
    random: actor.random,
    store: actor.store,
    sessionId: actor.sessionId,
    tools: tools.map((described) => toolOf(described, actor)),
    plugins: [(agent) => agent.on('session/event', (event) => hear(event, actor))],
    // Options that are plain data, as the file has them.
    ...(options as Partial<AgentOptions>),
    ...(fallback !== undefined && fallenBack(fallback, { ...adapter, model: fallback }, { baseURL: url, clock })),
  }
}

function fallenBack(model: string, ...made: Parameters<typeof adapterFor>): Partial<AgentOptions> {
  const hook: NonNullable<AgentOptions['hooks']>['agent/request'] = async ({ attempt }, next) => {
    const config = await next()
    return attempt === 1 ? config : { ...config, model }
  }
  return { models: [adapterFor(...made)], hooks: { 'agent/request': hook } }
}

function hear(event: SessionEvent, { told }: Actor): void {
  if (event.type !== 'assistant/chunk' || event.data.chunk.type !== 'text-delta') return
  told.push(`${event.data.attempt}: ${event.data.chunk.text}`)
}

function toolOf(described: CorpusTool, { runs }: Actor): Tool {
  const { name, mode, parameters = { type: 'object' }, needsApproval, returns = 'ok', hangsFor } = described
  return tool({
    name,
    description: `The tool ${name}`,
    parameters,
    ...(mode && { mode }),
    ...(needsApproval && { needsApproval }),
    execute(args, { callId, signal }) {
      runs.set(callId, (runs.get(callId) ?? 0) + 1)
      const hangs = hangsFor !== undefined && difference(hangsFor, args as Json) === undefined
      return hangs ? untilAborted(signal) : returns
    },
  })
}

const untilAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(new Error('stopped')), { once: true })
  })
