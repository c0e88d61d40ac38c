/**
 * Opens an agent: its log is read, the chart is started over the state that leaves, what a crash cut short is carried
 * on, and commands from elsewhere are served.
 */
import { type AnyActorRef, createActor } from 'xstate'
import { sessionPatience } from '../log/patience.ts'
import { openSession } from '../log/session.ts'
import type { LogStore, Ownership } from '../log/store.ts'
import { type ChartPorts, provideEffects } from '../machines/live.ts'
import { resumption } from '../machines/resumption.ts'
import { askModel } from '../services/ask-model.ts'
import { prepareStep } from '../services/prepare-step.ts'
import { call } from '../services/run-call.ts'
import { bindRuntime } from '../services/runtime.ts'
import { stopTurn } from '../services/stop-turn.ts'
import { wait } from '../services/wait.ts'
import type { Agent } from './agent.ts'
import { chartHash, VERSION } from './chart-hash.ts'
import { createFacade } from './facade.ts'
import { LivingAgent, type Watch } from './living.ts'
import { createMailbox } from './mailbox.ts'
import type { AgentOptions, Checked } from './options.ts'
import { restoreUnsaved } from './restore.ts'
import { createRuntime } from './runtime.ts'

const portsOf = new WeakMap<AnyActorRef, ChartPorts>()

function findPorts(agent: AnyActorRef): ChartPorts {
  const ports = portsOf.get(agent)
  if (ports === undefined) throw new Error('This agent has no log: start it with createAgent or agentActor')
  return ports
}

/** The chart with its real actors, provided once for all agents of the process. */
const liveMachine = provideEffects(findPorts, { prepareStep, askModel, wait, call, stopTurn })

/** Opens the session's log and starts its agent. The ownership stays the caller's to release when this throws. */
export async function openAgent(
  store: LogStore,
  taken: Ownership,
  options: AgentOptions,
  checked: Checked,
  watch: Watch,
): Promise<Agent> {
  const { ownership, refused } = await restoreUnsaved(store, taken, {
    folder: options.fallbackDir,
    patience: sessionPatience(checked.storeTimeoutMs),
  })
  const living = new LivingAgent({ store, ownership, options, checked, watch })
  const session = await openSession(store, ownership, living)
  const snapshot = living.loaded()
  const actor = createActor(liveMachine, { snapshot })
  living.begin(session, actor, snapshot)
  portsOf.set(actor, living)
  const agent = createFacade(living)
  bindRuntime(actor, createRuntime(living, agent))
  const mailbox = createMailbox(living)
  const resumed = resumption(snapshot, checked)
  const cancel = resumed && mailbox.openingCancel(ownership.posted ?? [])
  if (resumed !== undefined) {
    // Waits for the start before any command of a plug-in does: those find a turn that is carried on.
    actor.send({
      type: 'command.resume',
      resumed: { ...resumed, version: VERSION, chart: chartHash },
      ...(cancel === undefined ? {} : { cancel: cancel.command }),
    })
  }
  await living.plugIn(agent, options.plugins ?? [])
  // Robbed meanwhile: recording would find it out as if it were a defect of the chart.
  session.checkOwner()
  if (living.closing.begun || living.status.value === 'failed' || options.signal?.aborted) {
    // Rejects with the failure, if there is one.
    await agent.close()
    options.signal?.throwIfAborted()
    // A plug-in closed it, before anything was carried on.
    return agent
  }
  for (const error of refused) living.hooks.tell('agent/error', { turn: snapshot.context.turn, error })

  // The start itself closes the batch in hand: the cancel is taken in the one that records it.
  if (cancel !== undefined) living.withFirstRecord(() => mailbox.takeCancel(cancel))
  actor.start()
  try {
    // Only the store can fail here, and then the session fails with it.
    mailbox.serve(ownership.commands(ownership.lost), (error) => living.die(error))
  } catch (error) {
    // Nobody will hold it. Why it cannot be closed either says less.
    await agent.close().catch(() => {})
    throw error
  }
  return agent
}
