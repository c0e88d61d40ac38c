/**
 * A worker that will be killed: `node worker.mjs JSON`. It opens its session, says its messages, answers approvals, and
 * ends once nothing more happens. On stdout it tells what it was promised: `ack MESSAGE SEQ` the moment a receipt
 * resolved. SIGTERM suspends it, as it does the command line.
 */
import { writeSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { openaiCompatible } from '../../dist/adapters.js'
import { createAgent } from '../../dist/index.js'
import { sqliteStore } from '../../dist/log.js'
import { numberOf } from './random.mjs'
import { effectTools } from './tools.mjs'

/** @typedef {{ id: string, kind: 'followup' | 'steer' | 'inject' }} Said */
/** @typedef {{ store: string, session: string, witness: string, url: string, said: readonly Said[] }} Work */
/** @typedef {Awaited<ReturnType<typeof createAgent>>} Agent */

/** Exit code after SIGTERM, as the shell has it. */
const TERMINATED = 143

const work = /** @type {Work} */ (JSON.parse(process.argv[2] ?? 'null'))
const terminated = new AbortController()
process.on('SIGTERM', () => terminated.abort())

const store = sqliteStore(work.store, { busyTimeoutMs: 20_000 })
const agent = await createAgent({
  store,
  sessionId: work.session,
  model: openaiCompatible({ baseURL: work.url, model: 'crash', apiKey: 'none' }),
  tools: effectTools(work),
})
if (terminated.signal.aborted) await suspend()
terminated.signal.addEventListener('abort', () => void suspend())
answerApprovals(agent)
await atWork().catch((error) => {
  // Suspending refuses what is asked meanwhile, and ends the process itself.
  if (!terminated.signal.aborted) throw error
})
if (!terminated.signal.aborted) process.exit(0)

async function atWork() {
  for (const said of work.said) await say(said)
  await settled()
  await agent.close()
  await store[Symbol.asyncDispose]()
}

async function suspend() {
  await agent.close({ graceMs: 50 })
  await store[Symbol.asyncDispose]()
  process.exit(TERMINATED)
}

/** @param {Said} said */
async function say({ id, kind }) {
  if (terminated.signal.aborted) return
  const receipt = agent[kind](`task ${id}`, { requestId: id })
  receipt.accepted.then(
    ({ seq }) => writeSync(1, `ack ${id} ${seq}\n`),
    () => {
      // Nothing was promised.
    },
  )
  // Followups one after the other; what else is said comes while their turns are open.
  if (kind === 'followup') await Promise.race([receipt.turn, pause(numberOf(id) % 500)])
  else await receipt.accepted
}

/** At rest with nothing left waiting, also what an interrupted turn parked. */
async function settled() {
  for (;;) {
    await agent.whenIdle()
    if (agent.inbox.nextTurn.length + agent.inbox.nextStep.length === 0) return
    agent.wake()
  }
}

/** Whether a call that was cut off may run again: the answer belongs to the call. @param {Agent} agent */
function answerApprovals(agent) {
  /** @type {Set<string>} */
  const answered = new Set()
  agent.status$.subscribe(() => {
    for (const { callId, run, argumentsDigest: digest } of agent.approvals()) {
      const key = `${callId} ${run}`
      if (answered.has(key)) continue
      answered.add(key)
      const about = { digest, run, by: 'worker' }
      const allow = numberOf(key) % 3 > 0
      const answer = allow ? agent.approve(callId, about) : agent.deny(callId, about)
      answer.catch(() => {
        // The agent is closing: whoever opens it next is asked again.
      })
    }
  })
}
