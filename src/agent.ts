/** `createAgent`: the one way in. It checks what it is given, takes the session, and starts its agent. */

import type { Agent } from './agent/agent.ts'
import { openAgent } from './agent/open.ts'
import { type AgentOptions, checkOptions } from './agent/options.ts'
import type { SessionHeader } from './log/store.ts'
import { memoryStore } from './log/stores/memory.ts'

export type { Agent, Inbox, PendingApproval, SessionView } from './agent/agent.ts'
export type { AgentOptions, Limits, Plugin } from './agent/options.ts'
export type { Receipt } from './agent/receipts.ts'
export type { TurnResult } from './agent/turns.ts'

/**
 * Opens or creates a session and starts its agent. A log that was left in the middle of a turn is carried on.
 * @throws InvalidOption; SessionBusy while another agent has the session; InvalidLog, LogTooNew for a log that cannot
 * be read; StoreFailure; the reason of `signal`.
 */
export async function createAgent(options: AgentOptions): Promise<Agent> {
  const checked = checkOptions(options)
  options.signal?.throwIfAborted()
  const store = options.store ?? inMemory()
  const id = options.sessionId ?? checked.newId()
  const create: SessionHeader = { format: 1, id, createdAt: checked.clock.now() }
  const ownership = await store.acquire(id, { create, ...(options.steal ? { steal: true } : {}) })
  try {
    options.signal?.throwIfAborted()
    return await openAgent(store, ownership, options, checked)
  } catch (error) {
    await ownership.release()
    throw error
  }
}

let told = false

function inMemory() {
  if (!told) process.emitWarning('No store given: sessions live in memory and end with the process', 'PawlMemoryStore')
  told = true
  return memoryStore()
}
