/** Takes a session and starts its agent; what fails on the way gives the session back. */

import { inTime, sessionPatience } from '../log/patience.ts'
import type { Ownership, SessionHeader } from '../log/store.ts'
import { memoryStore } from '../log/stores/memory.ts'
import { timedStore } from '../log/stores/timed.ts'
import { maskError } from '../services/masking/errors.ts'
import type { Agent } from './agent.ts'
import type { Watch } from './living.ts'
import { openAgent } from './open.ts'
import { type AgentOptions, type Checked, checkOptions } from './options.ts'
import { checkPrice } from './price.ts'

const NO_WATCH: Watch = Object.freeze({})

/** As `createAgent`, and with a watch on what becomes durable. An abort takes effect when the store has answered. */
export async function create(options: AgentOptions, watch: Watch = NO_WATCH): Promise<Agent> {
  const checked = checkOptions(options)
  return start(options, checked, watch).catch((error: unknown) => {
    throw maskError(checked.mask, error)
  })
}

/** How long an opening that is given up has to give its session back, in ms. */
const GIVE_BACK_MS = 1_000

/**
 * As `create`, but an abort ends it soon also when the store does not answer. What has begun then goes to its own end,
 * which is to give the session back.
 */
export function createUnlessAborted(options: AgentOptions, watch: Watch = NO_WATCH): Promise<Agent> {
  const { signal } = options
  const created = create(options, watch)
  if (signal === undefined) return created
  return new Promise((resolve, reject) => {
    let timer: ReturnType<typeof setTimeout> | undefined
    const abort = (): void => {
      timer = setTimeout(() => reject(signal.reason), GIVE_BACK_MS)
    }
    const settled = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
    }
    signal.addEventListener('abort', abort, { once: true })
    created.finally(settled).catch(() => {})
    created.then(resolve, reject)
  })
}

async function start(options: AgentOptions, checked: Checked, watch: Watch): Promise<Agent> {
  options.signal?.throwIfAborted()
  if (checked.settings.needsPrice) await checkPrice(options)
  const store = options.store ?? inMemory()
  const id = options.sessionId ?? checked.newId()
  const header: SessionHeader = { format: 1, id, createdAt: checked.clock.now() }
  const asked = { create: header, ...(options.steal ? { steal: true } : {}) }
  const ownership = await timedStore(store, sessionPatience(checked.storeTimeoutMs)).acquire(id, asked)
  try {
    options.signal?.throwIfAborted()
    return await openAgent(store, ownership, options, checked, watch)
  } catch (error) {
    await giveBack(ownership, checked)
    throw error
  }
}

/** Whether that works or not: why the session was not opened says more. */
async function giveBack(ownership: Ownership, { storeTimeoutMs }: Checked): Promise<void> {
  const released = ownership.release()
  await inTime(released, `release session "${ownership.header.id}"`, sessionPatience(storeTimeoutMs)).catch(() => {})
}

let told = false

function inMemory() {
  if (!told) process.emitWarning('No store given: sessions live in memory and end with the process', 'PawlMemoryStore')
  told = true
  return memoryStore()
}
