/**
 * The agent of `pawl demo`, in a process of its own so that it can be killed. Each tool body leaves a line with the
 * witness file as it begins; in the first run one body then stays at work until the process dies.
 */
import { appendFileSync } from 'node:fs'
import { demo } from '../services/adapters/demo.ts'
import type { Tool, ToolContext } from '../services/tools/contract.ts'
import { workspaceTools } from '../services/tools/workspace/workspace-tools.ts'
import { openAgent } from './opened.ts'
import { openStore } from './settings.ts'

/** The session of every demo; each has a store of its own. */
export const DEMO_SESSION = 'demo'

export interface DemoChildFlags {
  readonly store: string
  readonly root: string
  readonly witness: string
  /** The first run asks it and is held; without it the second run carries on. */
  readonly question?: string
}

/** Sent to the parent once a body is at work and stays so. */
export interface Held {
  readonly held: string
}

/** Runs, or carries on. Resolves with the exit code; held, it never does. */
export async function demoChild(flags: DemoChildFlags): Promise<number> {
  await using store = openStore(flags.store)
  process.once('disconnect', () => process.exit(1))
  const hold = flags.question === undefined ? async () => {} : holdOnce()
  // Only what reads: a demo changes nothing in the folder.
  const tools = workspaceTools({ root: flags.root }).filter((tool) => tool.onCrash === 'rerun')
  const witnessed = tools.map((tool) => witnessing(tool, flags.witness, hold))
  const { agent } = await openAgent({ store, sessionId: DEMO_SESSION, model: demo(), tools: witnessed })
  if (flags.question === undefined) await agent.whenIdle()
  else await agent.run(flags.question)
  await agent.close()
  return 0
}

type Hold = (context: ToolContext) => Promise<void>

const witnessing = (tool: Tool, witness: string, hold: Hold): Tool => ({
  ...tool,
  async execute(args, context) {
    appendFileSync(witness, `${context.callId} ${context.run}\n`)
    await hold(context)
    return tool.execute(args, context)
  },
})

/** Holds the first call of the second step for ever: by then one tool has finished, and its siblings still can. */
function holdOnce(): Hold {
  let held = false
  return ({ step, callId }) => {
    if (held || step < 2) return Promise.resolve()
    held = true
    const message: Held = { held: callId }
    process.send?.(message)
    return new Promise(() => {})
  }
}
