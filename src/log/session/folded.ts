/** What a session keeps of its log: the folds over every event recorded or loaded so far, never the events themselves. */
import type { EventMap, SessionEvent } from '../events.ts'
import { requestContext } from '../projections/request-context.ts'
import { requestHeader } from '../projections/request-header.ts'
import { type SummaryState, summary } from '../projections/summary.ts'
import { createSurface, type Surface, type SurfaceNode } from '../projections/surface.ts'
import { type UsageState, usage } from '../projections/usage.ts'
import type { RequestHeader } from '../requests.ts'
import { type Calls, createCalls, type SavedCalls } from './calls.ts'
import { createStandings, type SavedStandings, type Standings } from './standings.ts'

/** `calling`: open, and its answer has calls, which need no result yet. */
export type StepStage = 'closed' | 'open' | 'calling'

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
  readonly step: StepStage
  /** Takes the next event. @throws InvalidEvent for a replacement that cannot be; nothing changed then. */
  place(event: SessionEvent): void
  /** Deltas were passed over, up to the one before `nextSeq`. */
  skipTo(nextSeq: number, time: number): void
  /** All of it, as of now. */
  saved(): SavedFolds
}

/** The folds as a checkpoint holds them. What is long is asked for when somebody wants to know. */
export interface SavedFolds {
  readonly nextSeq: number
  readonly lastTime: number
  readonly requestHeader: RequestHeader | null
  readonly requestContext: EventMap['request/context'] | null
  readonly usage: UsageState
  readonly summary: SummaryState
  readonly step: StepStage
  readonly calls: SavedCalls
  readonly standings: SavedStandings
  surface(): readonly SurfaceNode[]
}

/** Of an empty log, or of the one that left `saved`. */
export const createFolded = (saved?: SavedFolds): Folded => new SessionFolds(saved)

/** A class, because an agent has one of each and a thousand agents share their methods. */
class SessionFolds implements Folded {
  nextSeq = 0
  lastTime = 0
  readonly surface: Surface
  readonly calls: Calls
  readonly standings: Standings
  requestHeader = requestHeader.initial
  requestContext = requestContext.initial
  usage = usage.initial
  summary = summary.initial
  step: StepStage = 'closed'

  constructor(saved: SavedFolds | undefined) {
    this.surface = createSurface(saved?.surface)
    this.calls = createCalls(saved?.calls)
    this.standings = createStandings(saved?.standings)
    if (saved === undefined) return
    this.nextSeq = saved.nextSeq
    this.lastTime = saved.lastTime
    this.requestHeader = saved.requestHeader
    this.requestContext = saved.requestContext
    this.usage = saved.usage
    this.summary = saved.summary
    this.step = saved.step
  }

  saved(): SavedFolds {
    const { nextSeq, lastTime, requestHeader, requestContext, usage, summary, step } = this
    const standing = this.surface.standing()
    const folds = { nextSeq, lastTime, requestHeader, requestContext, usage, summary, step }
    return { ...folds, calls: this.calls.saved(), standings: this.standings.saved(), surface: () => standing }
  }

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
    this.step = stageAfter(this.step, event)
  }
}

function stageAfter(stage: StepStage, event: SessionEvent): StepStage {
  switch (event.type) {
    case 'step/start':
      return 'open'
    case 'step/end':
      return 'closed'
    case 'assistant/message':
      return stage !== 'closed' && event.data.calls.length > 0 ? 'calling' : stage
    default:
      return stage
  }
}
