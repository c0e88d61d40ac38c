/**
 * Drives an opened agent until nothing more happens by itself: shows what becomes durable, answers approvals as told,
 * turns signals into cancel and close. It closes the agent in every case.
 */
import type { Agent, PendingApproval } from '../agent.ts'
import type { SessionEvent, TurnEndReason } from '../log/events.ts'
import { type Piece, runView } from '../services/terminal/run-view.ts'
import { type RunTotals, runTotals } from '../services/terminal/totals.ts'
import { type ApprovalPolicy, answerApprovals } from './approvals.ts'
import type { Console } from './console.ts'
import type { Signals } from './signals.ts'

/** What a command came to. `idle`: the log is at rest and no turn ended here. */
export type Ending =
  | { readonly kind: 'ended'; readonly reason: TurnEndReason; readonly totals: RunTotals }
  | { readonly kind: 'waiting'; readonly approvals: readonly PendingApproval[] }
  | { readonly kind: 'suspended' }
  | { readonly kind: 'idle' }

export interface DriveOptions {
  /** The seq of the first event to show. */
  readonly from: number
  /** Events before it that name the calls under way. */
  readonly earlier: AsyncIterable<SessionEvent>
  readonly console: Console
  readonly approvals: ApprovalPolicy
  /** Caught since before the agent was opened. */
  readonly signals: Signals
  /** What to run; without it, what the log owes is carried on. */
  readonly prompt?: string
}

/** Runs to the end. @throws what made the agent fail: StoreFailure, Fenced, MessageDropped */
export async function drive(agent: Agent, options: DriveOptions): Promise<Ending> {
  const totals = runTotals()
  const approvals = answerApprovals(agent, options.approvals, options.console)
  const shown = show(agent, options, (event) => {
    totals.add(event)
    approvals.look()
  })
  // It is awaited below in every case; until then its failure is nobody's unhandled rejection.
  shown.catch(() => {})
  try {
    const working = work(agent, options.prompt)
    // After that, so that a prompt is in the log before a suspension that came while the agent was opened.
    const suspended = suspendedBy(options.signals, agent)
    const outcome = await Promise.race([working, approvals.leftWaiting, suspended])
    const pending = outcome === 'waiting' ? agent.approvals() : []
    await agent.close()
    await shown
    return endingOf(outcome, pending, totals.current())
  } catch (error) {
    // The failure of the run is the one to report; closing and showing can only repeat it.
    await agent.close().catch(() => {})
    await shown.catch(() => {})
    throw error
  } finally {
    approvals.dispose()
  }
}

type Outcome = TurnEndReason | 'quiet' | 'waiting' | 'suspended'

async function work(agent: Agent, prompt: string | undefined): Promise<Outcome> {
  if (prompt !== undefined) return (await agent.run(prompt)).reason
  await agent.whenIdle()
  return 'quiet'
}

function endingOf(outcome: Outcome, approvals: readonly PendingApproval[], totals: RunTotals): Ending {
  if (outcome === 'suspended') return { kind: 'suspended' }
  if (outcome === 'waiting') return { kind: 'waiting', approvals }
  const reason = outcome === 'quiet' ? totals.reason : outcome
  return reason === undefined ? { kind: 'idle' } : { kind: 'ended', reason, totals }
}

/** Resolves once SIGTERM or SIGHUP came. They win over how the work ends, which they end. */
const suspendedBy = (signals: Signals, agent: Agent): Promise<'suspended'> =>
  new Promise((resolve) => {
    signals.handle({
      // Both reject only with the agent's failure, which the work reports.
      cancel: () => void agent.cancel({ kind: 'user' }).catch(() => {}),
      suspend: () => {
        resolve('suspended')
        void agent.close().catch(() => {})
      },
    })
  })

async function show(agent: Agent, options: DriveOptions, onEvent: (event: SessionEvent) => void): Promise<void> {
  const { console, from, earlier } = options
  const view = runView({ palette: console.palette.out, width: Math.max(60, process.stdout.columns || 100) })
  if (!console.json) for await (const event of earlier) view.recall(event)
  for await (const event of agent.session.events({ from, live: true })) {
    onEvent(event)
    if (console.json) console.value(event)
    else write(console, view.show(event))
    await console.ready()
  }
  if (!console.json) write(console, view.end())
}

function write(console: Console, pieces: readonly Piece[]): void {
  for (const { to, text } of pieces) {
    if (to === 'out') console.out(text)
    else console.note(text.trimEnd())
  }
}
