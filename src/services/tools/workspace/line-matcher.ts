/**
 * Finds matching lines. A regular expression comes from a model and may take for ever, so it runs in a worker that is
 * stopped from outside; the process never waits for it.
 */
import { Worker } from 'node:worker_threads'
import { WorkspaceError } from './errors.ts'

/** Lines count from 1. */
export interface LineMatch {
  readonly number: number
  readonly line: string
}

export interface LineMatcher {
  /** The first `max` matching lines. */
  matches(text: string, max: number): Promise<readonly LineMatch[]>
  stop(): Promise<void>
}

/** Lines that hold `query`. */
export function textMatcher(query: string): LineMatcher {
  return {
    async matches(text, max) {
      const found: LineMatch[] = []
      for (const [index, line] of text.split(/\r?\n/).entries()) {
        if (found.length === max) break
        if (line.includes(query)) found.push({ number: index + 1, line })
      }
      return found
    },
    stop: async () => undefined,
  }
}

/** Given as text, so that it is the same from source and from a build. */
const WORKER = `
const { parentPort, workerData } = require('node:worker_threads')
const regex = new RegExp(workerData)
parentPort.on('message', ({ text, max }) => {
  const found = []
  for (const [index, line] of text.split(/\\r?\\n/).entries()) {
    if (found.length === max) break
    if (regex.test(line)) found.push({ number: index + 1, line: line.slice(0, 1000) })
  }
  parentPort.postMessage(found)
})
`

/**
 * Lines that match. An abort stops the worker, and `matches` rejects with the signal's reason.
 * @throws WorkspaceError INVALID_REGEX
 */
export function regexMatcher(source: string, signal: AbortSignal): LineMatcher {
  try {
    new RegExp(source)
  } catch (error) {
    const why = error instanceof Error ? error.message : 'unknown'
    throw new WorkspaceError('INVALID_REGEX', `The query is not a regular expression: ${why}`)
  }
  const resourceLimits = { maxOldGenerationSizeMb: 256 }
  const worker = new Worker(WORKER, { eval: true, workerData: source, env: {}, execArgv: [], resourceLimits })
  // Told to whoever asks next, and to nobody if the search is over.
  const died = new Promise<never>((_, reject) => {
    worker.once('error', (error) => reject(new WorkspaceError('IO_FAILURE', `The search failed: ${error.message}`)))
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    if (signal.aborted) reject(signal.reason)
  })
  died.catch(() => undefined)
  return {
    matches(text, max) {
      const answer = new Promise<readonly LineMatch[]>((resolve) => worker.once('message', resolve))
      worker.postMessage({ text, max })
      return Promise.race([answer, died])
    },
    async stop() {
      await worker.terminate()
    },
  }
}
