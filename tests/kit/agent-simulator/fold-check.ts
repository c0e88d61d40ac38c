/** Holds an agent to the central claim after every batch: folding what it recorded gives its live state. */
import type { Agent } from '../../../src/agent.ts'
import type { SessionEvent } from '../../../src/log/events.ts'
import { type ChartState, createFold } from '../../../src/machines/fold.ts'
import type { World } from './world.ts'

export interface FoldCheck {
  /** After each macrostep. */
  onReached(live: ChartState): void
  /** When the agent is still. */
  check(): void
}

/** Watches an agent from before its start; `before` is the log that it loaded. */
export function watchFold(world: World, agent: Agent, before: readonly SessionEvent[]): FoldCheck {
  const folded = createFold()
  for (const event of before) folded.push(event)
  /** Live states the fold has yet to reach: a command of an observer runs before its own events are told. */
  const ahead: string[] = []
  agent.on('session/event', (event) => {
    folded.push(event)
    while (ahead.length > 0 && ahead[0] === textOf(folded.snapshot())) ahead.shift()
  })
  return {
    onReached(live) {
      world.count('fold checks')
      const reached = textOf(live)
      if (ahead.length > 0 || textOf(folded.snapshot()) !== reached) ahead.push(reached)
    },
    check: () =>
      world.must(
        ahead.length === 0,
        'FOLD',
        () => `${agent.id}: folded ${textOf(folded.snapshot())}, live ${ahead[0]}`,
      ),
  }
}

const textOf = ({ value, context }: { readonly value: unknown; readonly context: unknown }): string =>
  JSON.stringify({ value, context })
