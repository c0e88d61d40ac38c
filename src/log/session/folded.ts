/** What a session keeps of its log: the folds over every event recorded or loaded so far, never the events themselves. */
import type { EventMap, SessionEvent } from '../events.ts'
import { requestContext } from '../projections/request-context.ts'
import { requestHeader } from '../projections/request-header.ts'
import { type SummaryState, summary } from '../projections/summary.ts'
import { createSurface, type Surface } from '../projections/surface.ts'
import { type UsageState, usage } from '../projections/usage.ts'
import type { RequestHeader } from '../requests.ts'
import { type Calls, createCalls } from './calls.ts'
import { createStandings, type Standings } from './standings.ts'

export interface Folded {
  readonly nextSeq: number
  /** Epoch ms of the last event; 0 before the first. */
  readonly lastTime: number
  readonly surface: Surface
  readonly calls: Calls
  readonly standings: Standings
  readonly requestHeader: RequestHeader | null
  readonly requestContext: EventMap['request/context'] | null
  readonly usage: UsageState
  readonly summary: SummaryState
  /** Takes the next event. @throws InvalidEvent for a replacement that cannot be; nothing changed then. */
  place(event: SessionEvent): void
  /** Deltas were passed over, up to the one before `nextSeq`. */
  skipTo(nextSeq: number, time: number): void
}

export const createFolded = (): Folded => new SessionFolds()

/** A class, because an agent has one of each and a thousand agents share their methods. */
class SessionFolds implements Folded {
  nextSeq = 0
  lastTime = 0
  readonly surface = createSurface()
  readonly calls = createCalls()
  readonly standings = createStandings()
  requestHeader = requestHeader.initial
  requestContext = requestContext.initial
  usage = usage.initial
  summary = summary.initial

  skipTo(nextSeq: number, time: number): void {
    this.nextSeq = nextSeq
    this.lastTime = time
  }

  place(event: SessionEvent): void {
    // Most events are chunks, and none of these folds looks at one.
    if (event.type !== 'assistant/chunk') this.surface.place(event)
    this.nextSeq = event.seq + 1
    this.lastTime = event.time
    if (event.type === 'assistant/chunk') return
    this.calls.place(event)
    this.standings.place(event)
    this.requestHeader = requestHeader.evolve(this.requestHeader, event)
    this.requestContext = requestContext.evolve(this.requestContext, event)
    this.usage = usage.evolve(this.usage, event)
    this.summary = summary.evolve(this.summary, event)
  }
}
