/**
 * The chart with its effects: `record` writes to the log and raises the very envelopes it wrote, so that the
 * consequences of one input are one macrostep and one batch.
 */
import { type AnyActorRef, enqueueActions } from 'xstate'
import { isMoving, type Recordable, type SessionEvent } from '../log/events.ts'
import { agentMachine, type RecordParams } from './agent.ts'

/** What the chart does to the world around it. Keyed by the agent's ref: two agents may share a system. */
export interface ChartPorts {
  /** Records in the batch in hand; returns the envelopes. */
  write(events: readonly Recordable[]): readonly SessionEvent[]
  /** A turn began: it gets a signal of its own. */
  openTurn(): void
  /** The turn is cancelled: its signal aborts, and the time to settle runs. */
  abortTurn(): void
  closeTurn(): void
}

type Actors = NonNullable<Parameters<typeof agentMachine.provide>[0]['actors']>

/** The machine with real effects. Provide it once a process: a provided machine costs more than many agents. */
export function provideEffects(portsOf: (agent: AnyActorRef) => ChartPorts, actors: Actors): typeof agentMachine {
  return agentMachine.provide({
    actors,
    actions: {
      record: enqueueActions(({ enqueue, self, context, event }, params: RecordParams) => {
        const events = params.events({ context, event })
        // Idle's entry is resolved while the actor is being created, before it can have ports.
        if (events.length === 0) return
        for (const recorded of portsOf(self).write(events)) {
          if (isMoving(recorded)) enqueue.raise(recorded)
        }
      }),
      openTurn: ({ self }) => portsOf(self).openTurn(),
      abortTurn: ({ self }) => portsOf(self).abortTurn(),
      closeTurn: ({ self }) => portsOf(self).closeTurn(),
    },
  })
}
