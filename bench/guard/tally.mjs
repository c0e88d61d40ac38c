/**
 * Counts what the main thread does: functions called, by V8's precise coverage, which runs them unoptimised; promises
 * made; messages sent to worker threads. Imported before anything that is counted.
 */
import { createHook } from 'node:async_hooks'
import { Session } from 'node:inspector'
import { MessagePort } from 'node:worker_threads'

const OURS = new URL('../../dist/', import.meta.url).href

/**
 * `calls` are those of our own functions, `where` by function.
 * @typedef {{ calls: number, xstate: number, promises: number, messages: number, where: Map<string, number> }} Tally
 */

let promises = 0
let messages = 0

createHook({
  init(_id, type) {
    if (type === 'PROMISE') promises += 1
  },
}).enable()
const { postMessage } = MessagePort.prototype
/** A worker's goes this way too. @param {Parameters<typeof postMessage>} sent */
MessagePort.prototype.postMessage = function (...sent) {
  messages += 1
  return postMessage.apply(this, sent)
}

const inspector = new Session()
inspector.connect()
inspector.post('Profiler.enable')
inspector.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })

/** Since the last time. @returns {Tally} */
export function takeTally() {
  const taken = { ...takeCalls(), promises, messages }
  promises = 0
  messages = 0
  return taken
}

function takeCalls() {
  const taken = { calls: 0, xstate: 0, where: new Map() }
  // The callback is called before `post` returns.
  inspector.post('Profiler.takePreciseCoverage', (error, coverage) => {
    if (error !== null) throw new Error(`V8 does not tell what was called: ${error.message}`)
    for (const { url, functions } of coverage.result) {
      const whose = url.includes('/node_modules/xstate/') ? 'xstate' : url.startsWith(OURS) ? 'calls' : undefined
      if (whose === undefined) continue
      for (const { functionName, ranges } of functions) {
        // A function's first range is the whole of it.
        const [{ count, startOffset } = { count: 0, startOffset: 0 }] = ranges
        const name = `${url.slice(url.lastIndexOf(whose === 'calls' ? '/dist/' : '/xstate/') + 1)} ${functionName || startOffset}`
        taken[whose] += count
        taken.where.set(name, (taken.where.get(name) ?? 0) + count)
      }
    }
  })
  return taken
}
