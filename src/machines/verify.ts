/** Whether a log is one this chart could have written: its invariants hold, and every moving event was awaited. */
import { InvalidLog, PawlError } from '../log/errors.ts'
import type { SessionEvent } from '../log/events.ts'
import { checkInvariants } from '../log/invariants.ts'
import { validateStored } from '../log/validate.ts'
import { createFold, stateName } from './fold.ts'

/** One rule broken at one event. */
export interface Violation {
  readonly seq: number
  readonly rule: string
  readonly message: string
}

/** `state` is where the log ends, such as `idle` or `stepRequest.waiting`. */
export type Verified =
  | { readonly ok: true; readonly events: number; readonly turns: number; readonly state: string }
  | { readonly ok: false; readonly violations: readonly [Violation, ...Violation[]] }

/** Reads a whole log and says what is wrong with it, in the order of its events. Never throws for a bad log. */
export function verify(events: Iterable<SessionEvent>): Verified {
  const folded = createFold()
  const read: SessionEvent[] = []
  const violations: Violation[] = []
  for (const stored of events) {
    const event = readEvent(stored, read, violations)
    if (event === undefined) break
    read.push(event)
    if (!folded.accepts(event)) {
      const state = stateName(folded.snapshot())
      violations.push({ seq: event.seq, rule: 'CHART', message: `${event.type} cannot happen in ${state}` })
    }
    folded.push(event)
  }
  violations.push(...checkInvariants(read))
  const [first, ...rest] = violations.sort((a, b) => a.seq - b.seq)
  if (first !== undefined) return { ok: false, violations: [first, ...rest] }
  const { context, ...snapshot } = folded.snapshot()
  return { ok: true, events: read.length, turns: context.turn, state: stateName(snapshot) }
}

/** After an event that cannot be read nothing can be said of those behind it. */
function readEvent(
  stored: unknown,
  before: readonly SessionEvent[],
  violations: Violation[],
): SessionEvent | undefined {
  try {
    return validateStored(stored, before.length, before.at(-1)?.time ?? 0)
  } catch (error) {
    const rule = error instanceof InvalidLog ? error.rule : error instanceof PawlError ? error.code : 'UNREADABLE'
    violations.push({ seq: before.length, rule, message: error instanceof Error ? error.message : String(error) })
    return undefined
  }
}
