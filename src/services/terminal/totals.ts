/** What a stretch of a log came to: its last end of a turn, and what was spent on the way. */
import type { SessionEvent, TurnEndReason } from '../../log/events.ts'
import { reasonLine } from './reasons.ts'
import { count, duration } from './text.ts'

export interface RunTotals {
  /** How the last turn that ended did; none ended: absent. */
  readonly reason?: TurnEndReason
  readonly steps: number
  readonly calls: number
  readonly inputTokens: number
  readonly outputTokens: number
}

const NOTHING: RunTotals = { steps: 0, calls: 0, inputTokens: 0, outputTokens: 0 }

/** Adds events up as they come. Tokens read from a cache count as input. */
export function runTotals(): { add(event: SessionEvent): void; current(): RunTotals } {
  let totals = NOTHING
  return {
    current: () => totals,
    add(event) {
      totals = plus(totals, event)
    },
  }
}

function plus(totals: RunTotals, event: SessionEvent): RunTotals {
  switch (event.type) {
    case 'turn/end':
      return { ...totals, reason: event.data.reason }
    case 'step/end':
      return { ...totals, steps: totals.steps + 1 }
    case 'tool/result':
      return { ...totals, calls: totals.calls + 1 }
    case 'assistant/message': {
      const { inputTokens = 0, outputTokens = 0, cacheReadTokens = 0, cacheWriteTokens = 0 } = event.data.usage ?? {}
      const input = totals.inputTokens + inputTokens + cacheReadTokens + cacheWriteTokens
      return { ...totals, inputTokens: input, outputTokens: totals.outputTokens + outputTokens }
    }
    default:
      return totals
  }
}

/** Everything about an end in a line: `completed · 3 steps · 5 calls · 1,204 tokens in, 60 out · 2.3 s`. */
export function endingLine(reason: TurnEndReason, totals: RunTotals, ms: number): string {
  const tokens = `${totals.inputTokens.toLocaleString('en-US')} tokens in, ${totals.outputTokens.toLocaleString('en-US')} out`
  return [reasonLine(reason), count(totals.steps, 'step'), count(totals.calls, 'call'), tokens, duration(ms)].join(
    ' · ',
  )
}
