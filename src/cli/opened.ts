/** An agent with the CLI's tools and options, and where its log stood when it was opened. */
import { join } from 'node:path'
import { type Agent, createAgent } from '../agent.ts'
import type { SessionEvent } from '../log/events.ts'
import type { LogStore, Ownership, PostedCommand } from '../log/store.ts'
import type { ModelAdapter } from '../services/llm/adapter.ts'
import type { Tool } from '../services/tools/contract.ts'
import { keysIn, stateDirectory } from './settings.ts'

export interface OpenOptions {
  readonly store: LogStore
  readonly sessionId?: string
  readonly model: ModelAdapter
  readonly tools: readonly Tool[]
  readonly maxSteps?: number
}

export interface Opened {
  readonly agent: Agent
  /** The seq of the first event that this process records. */
  readonly from: number
  /** The calls that were made before, with their turns. */
  readonly earlier: AsyncIterable<SessionEvent>
}

/** How long commands that wait at opening get to be taken, in ms. */
const PATIENCE_MS = 10_000

/**
 * Opens or creates a session; commands that were left for it before are taken then.
 */
export async function openAgent(options: OpenOptions): Promise<Opened> {
  let opened: Ownership | undefined
  const store: LogStore = {
    ...options.store,
    acquire: async (sessionId, acquireOptions) => {
      opened = await options.store.acquire(sessionId, acquireOptions)
      return opened
    },
  }
  const { sessionId, model, tools, maxSteps } = options
  const secrets = keysIn()
  const agent = await createAgent({
    model,
    store,
    tools,
    system: SYSTEM,
    fallbackDir: join(stateDirectory(), 'unsaved'),
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(maxSteps === undefined ? {} : { maxSteps }),
    ...(secrets.length > 0 ? { secrets } : {}),
  })
  await taken(options.store, agent.id, opened?.posted ?? [])
  const from = opened?.head ?? 0
  return { agent, from, earlier: callsBefore(options.store, agent.id, from) }
}

async function* callsBefore(store: LogStore, session: string, from: number): AsyncGenerator<SessionEvent> {
  if (from === 0) return
  for await (const event of store.read(session, { types: ['turn/start', 'tool/call', 'tool/dispatch'] })) {
    if (event.seq < from) yield event
  }
}

/** Only after this does the agent's status say what the session comes to. */
async function taken(store: LogStore, session: string, posted: readonly PostedCommand[]): Promise<void> {
  const signal = AbortSignal.timeout(PATIENCE_MS)
  // A store that fails here fails the agent, which says so to whoever waits for it.
  await Promise.all(posted.map(({ id }) => store.outcome(session, id, signal).catch(() => {})))
}

const SYSTEM =
  'You work in a folder of files on the command line of the user. Look with the tools before you answer, quote what ' +
  'you found with path and line, and say plainly what you could not find or do.'
