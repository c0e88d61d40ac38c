/** Opens a log that a release left, as its index says, and tells what came of it: from the outside, and from the log. */
import { type Agent, type AgentOptions, createAgent } from '../../../src/agent.ts'
import { textOf } from '../../../src/log/messages.ts'
import type { LogStore } from '../../../src/log/store.ts'
import { scripted, text, toolCall } from '../../../src/services/adapters/scripted.ts'
import type { Tool } from '../../../src/services/tools/contract.ts'
import { type ToolDefinition, tool } from '../../../src/services/tools/tool.ts'
import { countingIds, ofType, settle, stored } from '../agents.ts'
import { type ManualClock, manualClock } from '../manual-clock.ts'
import type { LeftLog, NeededTool, Outcome } from '../releases.ts'

/** What an opening came to. */
export interface CarriedOn extends Outcome {
  /** How often the model was asked. */
  readonly asked: number
}

interface Witness {
  readonly ran: string[]
  readonly probed: string[]
}

/** Carries the session on until nothing more happens by itself, answering and waking as the index says. */
export async function carryOn(store: LogStore, log: LeftLog, sessionId = log.header.id): Promise<CarriedOn> {
  const before = await stored(store, sessionId)
  const witness: Witness = { ran: [], probed: [] }
  const clock = manualClock((before.at(-1)?.time ?? log.header.createdAt) + log.opened.afterMs)
  const model = scripted((_, n) => `Carried on, ${n + 1}.`)
  const agent = await createAgent({
    ...optionsOf({ store, sessionId, clock }),
    ...log.opened.options,
    model,
    tools: log.opened.tools.map((needed) => make(needed, witness)),
  })
  const mail = await taken(store, log, sessionId)
  await drive(agent, clock, log)
  if (log.opened.wake) agent.wake()
  await drive(agent, clock, log)
  const parked = [...agent.inbox.nextTurn, ...agent.inbox.nextStep].map((item) =>
    item.kind === 'message' ? textOf(item.message) : item.callId,
  )
  await agent.close()
  const after = (await stored(store, sessionId)).slice(before.length)
  const turns = ofType(after, 'turn/end').map(({ data }) => data)
  return { turns, ran: witness.ran.sort(), probed: witness.probed.sort(), parked, mail, asked: model.requests.length }
}

/** One turn more, with a call in it, of an agent that knows no tool but that call's. The reason for which it ended. */
export async function oneMoreTurn(
  store: LogStore,
  sessionId: string,
): Promise<{ reason: string; ran: readonly string[] }> {
  const last = (await stored(store, sessionId)).at(-1)
  const witness: Witness = { ran: [], probed: [] }
  await using agent = await createAgent({
    ...optionsOf({ store, sessionId, clock: manualClock((last?.time ?? 0) + 1_000) }),
    model: scripted((_, n) =>
      n === 0 ? [text('Once more.'), toolCall('extra', {}, { id: 'extra' })] : 'That is all.',
    ),
    tools: [make({ name: 'extra' }, witness)],
  })
  const { reason } = await agent.run('one more thing')
  return { reason: reason.kind, ran: witness.ran }
}

/** Ids that no release wrote. */
const optionsOf = (own: Pick<AgentOptions, 'store' | 'sessionId' | 'clock'>) => ({
  ...own,
  newId: countingIds(`new ${own.clock?.now()}`),
  random: () => 0.5,
})

function make(needed: NeededTool, { ran, probed }: Witness): Tool {
  const { name, mode, onCrash = 'unknown', probe = 'unknown', needsApproval, approvalExpiresMs } = needed
  const probes: ToolDefinition<{ type: 'object' }>['onCrash'] = async ({ callId }) => {
    probed.push(`${name} ${callId}`)
    return probe === 'done' ? { kind: 'done', value: 'it was done' } : { kind: probe }
  }
  return tool({
    name,
    description: `Does ${name}.`,
    parameters: { type: 'object' },
    onCrash: onCrash === 'probe' ? probes : onCrash,
    ...(mode === undefined ? {} : { mode }),
    ...(needsApproval === undefined ? {} : { needsApproval }),
    ...(approvalExpiresMs === undefined ? {} : { approvalExpiresMs }),
    execute(_, { callId, run }) {
      ran.push(`${name} ${callId} ${run}`)
      return `${name} is done`
    },
  })
}

/** What became of the commands that waited; each is answered without anybody's doing. */
async function taken(store: LogStore, { posted }: LeftLog, sessionId: string): Promise<Outcome['mail']> {
  const mail: Record<string, string> = {}
  for (const { id } of posted) {
    const outcome = await store.outcome(sessionId, id, AbortSignal.timeout(10_000))
    mail[id] = outcome.kind === 'taken' ? 'taken' : outcome.code
  }
  return mail
}

/** To rest: approvals are answered as the index says, and what waits for a time has it come. */
async function drive(agent: Agent, clock: ManualClock, log: LeftLog): Promise<void> {
  for (;;) {
    await agent.whenQuiet()
    if (agent.status === 'idle') return
    const [pending] = agent.approvals()
    if (pending === undefined) clock.advance(3_600_000)
    else await answer(agent, clock, pending, log)
    await settle()
  }
}

async function answer(
  agent: Agent,
  clock: ManualClock,
  { callId, run, argumentsDigest: digest, expiresAt = 0 }: ReturnType<Agent['approvals']>[number],
  { name, opened: { answers } }: LeftLog,
): Promise<void> {
  const how = answers[callId]
  if (how === undefined) throw new Error(`"${name}" asks for ${callId}, and its index has no answer`)
  if (how === 'expire') clock.advance(expiresAt - clock.now())
  else await agent[how](callId, { digest, run })
}
