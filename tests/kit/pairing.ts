/** Whether a provider would take a history: after an answer the result of each of its calls, by id and in its order. */
import { expect } from 'vitest'
import type { Message } from '../../src/log/messages.ts'
import { callIds } from '../../src/log/projections/surface.ts'

interface Batch {
  readonly calls: readonly string[]
  readonly results: string[]
}

/** Each answer's calls and the results that follow it at once; results anywhere else follow the call '(none)'. */
export function pairs(messages: readonly Message[]): readonly Batch[] {
  const found: Batch[] = []
  let open: Batch | undefined
  const begin = (calls: readonly string[]): Batch => {
    const batch = { calls, results: [] }
    found.push(batch)
    return batch
  }
  for (const message of messages) {
    if (message.source.kind === 'tool') {
      open ??= begin(['(none)'])
      open.results.push(message.source.callId)
      continue
    }
    const calls = message.role === 'assistant' ? callIds(message) : []
    open = calls.length > 0 ? begin(calls) : undefined
  }
  return found
}

/** Fails unless every call of a history has its result, and every result its call. */
export function expectPaired(messages: readonly Message[]): void {
  for (const { calls, results } of pairs(messages)) expect(results).toEqual(calls)
}
