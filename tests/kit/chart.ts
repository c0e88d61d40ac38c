/**
 * The real chart and its real effects, driven by hand: the log is an array, and the actors only wait to be answered.
 * After every input the state folded from the log must be the live one.
 */
import { createActor } from 'xstate'
import type { Recordable, SessionEvent, TurnLimits } from '../../src/log/events.ts'
import { placed, validateNew } from '../../src/log/validate.ts'
import type { AgentEvent } from '../../src/machines/agent.ts'
import { type AgentSnapshot, fold, stateName } from '../../src/machines/fold.ts'
import { inShort } from './contexts.ts'
import type { Work } from './simulator/effects.ts'
import { hosted, simulatedMachine } from './simulator/machine.ts'

export interface Chart {
  /** Gives the chart an input. @returns what it recorded, in short. */
  send(input: AgentEvent): readonly string[]
  /** The place the chart is in, such as `stepRequest.waiting`. */
  state(): string
  context(): AgentSnapshot['context']
  readonly log: readonly SessionEvent[]
  /** The actors that run, without the ref they are given, in the order they began. */
  running(): readonly object[]
  /** How many actors were started so far. */
  started(): number
  /** What was done to the turn's signal, in order. */
  readonly signals: readonly ('open' | 'abort' | 'close')[]
  /** The process is gone: another opens the log, and nothing runs in it yet. */
  reopen(): Chart
}

interface ChartOptions {
  /** The time of all that is recorded. */
  readonly now?: number
  readonly limits?: TurnLimits
  /** What this actor is asked to do, it throws. */
  readonly throwing?: Work['kind']
}

/** A chart over a log. */
export function openChart(
  past: readonly SessionEvent[] = [],
  { now = 1_000, limits = { maxSteps: 3, maxParallelToolCalls: 2 }, throwing }: ChartOptions = {},
): Chart {
  const log = [...past]
  const works = new Set<Work>()
  const signals: ('open' | 'abort' | 'close')[] = []
  let started = 0
  let recorded: Recordable[] = []
  const write = (events: readonly Recordable[]) => {
    const written = events.map((event, index) => {
      const stamped = event.type === 'turn/start' ? { ...event, data: { ...event.data, limits } } : event
      return placed(validateNew(stamped), log.length + index, now)
    })
    log.push(...written)
    recorded.push(...events)
    return written
  }
  const agent = createActor(simulatedMachine, { snapshot: fold(past) })
  hosted.set(agent, {
    write,
    openTurn: () => signals.push('open'),
    abortTurn: () => signals.push('abort'),
    closeTurn: () => signals.push('close'),
    start: (work) => {
      if (work.kind === throwing) throw new Error(`${throwing} broke`)
      works.add(work)
      started += 1
      return () => works.delete(work)
    },
  })
  agent.subscribe({ error: () => {} })
  agent.start()
  const checkFold = () => {
    const { value, context, status, error } = agent.getSnapshot()
    if (status === 'error') throw error
    const folded = fold(log)
    if (JSON.stringify([folded.value, folded.context]) !== JSON.stringify([value, context])) {
      throw new Error(`fold and live differ: ${JSON.stringify(folded.context)} ${JSON.stringify(context)}`)
    }
  }
  return {
    send(input) {
      recorded = []
      agent.send(input)
      checkFold()
      return inShort(recorded)
    },
    state: () => stateName(agent.getSnapshot()),
    context: () => agent.getSnapshot().context,
    log,
    running: () => [...works].map(told),
    started: () => started,
    signals,
    reopen() {
      agent.stop()
      return openChart(log, { now, limits })
    },
  }
}

/** What an actor was told, beside whose it is. */
function told(work: Work): object {
  if (work.kind === 'settle') return work
  const { agent: _, ...input } = work.input
  return { kind: work.kind, ...input }
}
