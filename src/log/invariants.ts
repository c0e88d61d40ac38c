/**
 * What holds in every log, checked without the chart, in one pass, in memory bounded by the conversation, what is open,
 * and ids. The rules stand in `invariants/rules.ts`; a log that ends early breaks none.
 */
import { trackAttempts } from './attempts.ts'
import { InvalidEvent, InvalidLog, LogTooNew } from './errors.ts'
import type { SessionEvent } from './events.ts'
import { answers } from './invariants/answers.ts'
import { calls } from './invariants/calls.ts'
import { consequences } from './invariants/consequences.ts'
import { endings } from './invariants/endings.ts'
import { history } from './invariants/history.ts'
import { inboxRules } from './invariants/inbox.ts'
import { lifecycle } from './invariants/lifecycle.ts'
import { recovery } from './invariants/recovery.ts'
import { requests } from './invariants/requests.ts'
import { retries } from './invariants/retries.ts'
import { RULES, type Rule } from './invariants/rules.ts'
import { spending } from './invariants/spending.ts'
import { streams } from './invariants/stream.ts'
import { advance, openFrame } from './invariants/topic.ts'
import { createSurface, type Surface } from './projections/surface.ts'
import { validateStored } from './validate.ts'

export interface Violation {
  /** The event that broke the rule. */
  readonly seq: number
  /** A name of `RULES`. */
  readonly rule: Rule
  readonly message: string
}

/** Checks a log a piece at a time. */
export interface InvariantChecker {
  /** Takes the next event; it need not be valid. @returns the rules it breaks. */
  check(event: unknown): readonly Violation[]
  /** Whoever writes the log is quiet, and no batch was cut. @returns what had to come by now and did not. */
  rest(): readonly Violation[]
  /** The log is over. @returns what is wrong with it as a whole. */
  end(): readonly Violation[]
}

const NONE: readonly Violation[] = Object.freeze([])
const TOPICS = [
  lifecycle,
  endings,
  consequences,
  recovery,
  spending,
  inboxRules,
  calls,
  requests,
  streams,
  answers,
  retries,
  history,
] as const

/** A checker at the start of a log. After a breach of the log's structure it checks no further. */
export function createInvariantChecker(): InvariantChecker {
  const surface = createSurface()
  const attempts = trackAttempts(surface)
  const frame = openFrame(surface, attempts)
  let found: Violation[] = []
  let seq = 0
  let time = 0
  let broken = false
  const report = (rule: Rule, message: string) => found.push({ seq, rule, message })
  const topics = TOPICS.map((topic) => topic(frame, report))

  const take = (): readonly Violation[] => {
    if (found.length === 0) return NONE
    const taken = Object.freeze(found)
    found = []
    return taken
  }
  const checkValid = (event: SessionEvent) => {
    for (const topic of topics) topic.check(event)
    attempts.note(event)
    placeIfPossible(surface, event)
    advance(frame, event)
    time = event.time
    seq += 1
  }
  return {
    check(event) {
      if (broken) return []
      const valid = validOr(event, seq, time)
      if (valid.kind === 'valid') checkValid(valid.event)
      else {
        broken = true
        report(valid.rule, valid.message)
      }
      return take()
    },
    rest() {
      if (!broken) for (const topic of topics) topic.rest?.()
      return take()
    },
    end() {
      if (seq > 0) seq -= 1
      if (!broken) for (const topic of topics) topic.end?.()
      return take()
    },
  }
}

/**
 * Every breach of the rules in a log, in order; none if the log is good. Events are read from seq 0 and need not be
 * valid: what is not an event of this version is a breach like any other, and ends the check.
 */
export function checkInvariants(events: Iterable<SessionEvent>): readonly Violation[] {
  const checker = createInvariantChecker()
  const found: Violation[] = []
  for (const event of events) found.push(...checker.check(event))
  found.push(...checker.end())
  return found
}

type Checked =
  | { readonly kind: 'valid'; readonly event: SessionEvent }
  | { readonly kind: 'broken'; readonly rule: Rule; readonly message: string }

function validOr(event: unknown, seq: number, time: number): Checked {
  try {
    return { kind: 'valid', event: validateStored(event, seq, time) }
  } catch (error) {
    if (error instanceof LogTooNew) return { kind: 'broken', rule: 'UNKNOWN-TYPE', message: error.message }
    if (error instanceof InvalidLog && isRule(error.rule))
      return { kind: 'broken', rule: error.rule, message: messageOf(error) }
    throw error
  }
}

/** The message without what a violation says in its other fields. */
const messageOf = ({ message, seq, rule }: InvalidLog): string => message.slice(`seq ${seq}: ${rule}: `.length)

const isRule = (name: string): name is Rule => Object.hasOwn(RULES, name)

function placeIfPossible(surface: Surface, event: SessionEvent): void {
  try {
    surface.place(event)
  } catch (error) {
    // Reported by the history's rules already; the surface stays as it was.
    if (!(error instanceof InvalidEvent)) throw error
  }
}
