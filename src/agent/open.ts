/**
 * Opens an agent: its log is read, the chart is started over the state that leaves, what a crash cut short is carried
 * on, and commands from elsewhere are served.
 */
import { sessionPatience } from '../log/patience.ts'
import { openSession } from '../log/session.ts'
import type { LogStore, Ownership } from '../log/store.ts'
import { resumption } from '../machines/resumption.ts'
import type { Agent } from './agent.ts'
import { chartHash, VERSION } from './chart-hash.ts'
import { createFacade } from './facade.ts'
import type { Watch } from './living.ts'
import { createMailbox } from './mailbox.ts'
import type { AgentOptions, Checked } from './options.ts'
import { Presence } from './presence.ts'
import { restoreUnsaved } from './restore.ts'

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
  const presence = new Presence({ store, ownership, options, checked, watch })
  const living = presence.awake()
  const session = await openSession(store, ownership, living)
  presence.begin(living, session)
  const agent = createFacade(presence)
  presence.holder = agent
  const mailbox = createMailbox(presence)
  const { state } = living
  const resumed = resumption(state, checked)
  const cancel = resumed && mailbox.openingCancel(ownership.posted ?? [])
  if (resumed !== undefined) {
    // Waits for the start before any command of a plug-in does: those find a turn that is carried on.
    living.send({
      type: 'command.resume',
      resumed: { ...resumed, version: VERSION, chart: chartHash },
      ...(cancel === undefined ? {} : { cancel: cancel.command }),
    })
  }
  await presence.plugIn(agent, options.plugins ?? [])
  // Robbed meanwhile: recording would find it out as if it were a defect of the chart.
  session.checkOwner()
  if (presence.closing.begun || presence.status === 'failed' || options.signal?.aborted) {
    // Rejects with the failure, if there is one.
    await agent.close()
    options.signal?.throwIfAborted()
    // A plug-in closed it, before anything was carried on.
    return agent
  }
  for (const error of refused) presence.hooks.tell('agent/error', { turn: state.context.turn, error })

  // The start itself closes the batch in hand: the cancel is taken in the one that records it.
  if (cancel !== undefined) living.withFirstRecord(() => mailbox.takeCancel(cancel))
  living.start()
  try {
    // Only the store can fail here, and then the session fails with it.
    presence.serve(mailbox)
  } catch (error) {
    // Nobody will hold it. Why it cannot be closed either says less.
    await agent.close().catch(() => {})
    throw error
  }
  return agent
}
