/** Takes a session and starts its agent; what fails on the way gives the session back. */

import type { LogStore, SessionHeader } from '../log/store.ts'
import { memoryStore } from '../log/stores/memory.ts'
import { assertPriced } from '../services/llm/request.ts'
import { maskError } from '../services/masking/errors.ts'
import type { Agent } from './agent.ts'
import type { Watch } from './living.ts'
import { openAgent } from './open.ts'
import { type AgentOptions, type Checked, checkOptions } from './options.ts'

const NO_WATCH: Watch = Object.freeze({})

/** As `createAgent`, and with a watch on what becomes durable. */
export async function create(options: AgentOptions, watch: Watch = NO_WATCH): Promise<Agent> {
  const checked = checkOptions(options)
  return start(options, checked, watch).catch((error: unknown) => {
    throw maskError(checked.mask, error)
  })
}

async function start(options: AgentOptions, checked: Checked, watch: Watch): Promise<Agent> {
  options.signal?.throwIfAborted()
  if (checked.settings.needsPrice) await priceOf(options)
  const store = options.store ?? inMemory()
  const id = options.sessionId ?? checked.newId()
  const header: SessionHeader = { format: 1, id, createdAt: checked.clock.now() }
  const ownership = await store.acquire(id, { create: header, ...(options.steal ? { steal: true } : {}) })
  try {
    options.signal?.throwIfAborted()
    return await openAgent(store, ownership, options, checked, watch)
  } catch (error) {
    await ownership.release()
    throw error
  }
}

/** Known before anything is spent. */
async function priceOf({ model, signal = new AbortController().signal }: AgentOptions): Promise<void> {
  const config = { provider: model.provider, model: model.model }
  assertPriced((await model.prepare?.(config, signal)) ?? { config })
}

let told = false

function inMemory(): LogStore {
  if (!told) process.emitWarning('No store given: sessions live in memory and end with the process', 'PawlMemoryStore')
  told = true
  return memoryStore()
}
