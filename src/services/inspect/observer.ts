/**
 * An XState inspector fed from the log: one event and one snapshot for each durable event, so that what is watched
 * is what a replay would show, and nothing that a crash takes back.
 */
import type { AnyActorRef, InspectionEvent, Snapshot } from 'xstate'
import type { SessionEvent } from '../../log/events.ts'
import { renderCauses } from '../llm/failure.ts'

/** Folds as it is told; the composition gives the chart's. */
export interface Folding {
  push(event: SessionEvent): void
  snapshot(): Snapshot<unknown>
}

export interface InspectOptions {
  readonly inspect: (event: InspectionEvent) => void
  readonly actorRef: AnyActorRef
  /** Where the log stood when it was opened. */
  readonly folding: Folding
}

/** Tells the inspector of the actor, and returns what to call with each durable event. What it throws is a warning. */
export function createInspection({ inspect, actorRef, folding }: InspectOptions): (event: SessionEvent) => void {
  const base = { actorRef, rootId: actorRef.sessionId }
  let warned = false
  const tell = (event: InspectionEvent): void => {
    try {
      inspect(event)
    } catch (thrown) {
      // Once: what fails for one event most likely fails for each.
      if (warned) return
      warned = true
      process.emitWarning(`An inspector failed: ${renderCauses(thrown)}`, 'PawlObserverWarning')
    }
  }
  tell({ type: '@xstate.actor', ...base })
  return (event) => {
    folding.push(event)
    tell({ type: '@xstate.event', ...base, sourceRef: undefined, event })
    tell({ type: '@xstate.snapshot', ...base, event, snapshot: folding.snapshot() })
  }
}
