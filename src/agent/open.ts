/**
 * An agent, put together: the chart over its folded state, the session it records in, and the services its actors
 * run. Everything that happens goes through the actor; everything that is told of it follows its macrosteps.
 */
import { BehaviorSubject } from 'rxjs'
import { type AnyActorRef, createActor } from 'xstate'
import { createRequestDigester } from '../log/digest.ts'
import type { PawlError } from '../log/errors.ts'
import type { BoundCause, SessionEvent } from '../log/events.ts'
import { openSession } from '../log/session.ts'
import type { LogStore, Ownership, SummaryUpdate } from '../log/store.ts'
import { createFold } from '../machines/fold.ts'
import { type ChartPorts, provideEffects } from '../machines/live.ts'
import { resumption } from '../machines/resumption.ts'
import { callOf } from '../machines/tool-records.ts'
import { askModel } from '../services/ask-model.ts'
import type { AgentStatus } from '../services/hooks/contract.ts'
import { createHooks } from '../services/hooks/registry.ts'
import { createInspection } from '../services/inspect/observer.ts'
import { contextStands } from '../services/llm/runtime-context.ts'
import { prepareStep } from '../services/prepare-step.ts'
import { call } from '../services/run-call.ts'
import { type AgentRuntime, bindRuntime } from '../services/runtime.ts'
import { stopTurn } from '../services/stop-turn.ts'
import { wait } from '../services/wait.ts'
import type { Agent } from './agent.ts'
import { createApprovals } from './approvals.ts'
import { createBudgets } from './budgets.ts'
import { chartHash, VERSION } from './chart-hash.ts'
import { createClosing } from './closing.ts'
import { createFacade } from './facade.ts'
import { forkSession } from './fork.ts'
import { createMailbox } from './mailbox.ts'
import { createBatchObserver } from './observers.ts'
import { type AgentOptions, adapterKey, type Checked } from './options.ts'
import { createReceipts } from './receipts.ts'
import { restoreUnsaved } from './restore.ts'
import { statusOf, summaryOf } from './status.ts'
import { createTurnControl } from './turn-control.ts'
import { createTurns, type TurnResult } from './turns.ts'
import { eventDigest, saveUnsaved } from './unsaved.ts'
import { createWaiters } from './waiters.ts'

const portsOf = new WeakMap<AnyActorRef, ChartPorts>()

function findPorts(agent: AnyActorRef): ChartPorts {
  const ports = portsOf.get(agent)
  if (ports === undefined) throw new Error('This agent has no log: start it with createAgent or agentActor')
  return ports
}

/** The chart with its real actors, provided once for all agents of the process. */
const liveMachine = provideEffects(findPorts, { prepareStep, askModel, wait, call, stopTurn })

/** For who embeds an agent: what is durable, in order. */
export interface Watch {
  readonly onDurable?: (event: SessionEvent, ended: TurnResult | undefined) => void
}

/** Opens the session's log and starts its agent. The ownership stays the caller's to release when this throws. */
export async function openAgent(
  store: LogStore,
  taken: Ownership,
  options: AgentOptions,
  checked: Checked,
  watch: Watch = {},
): Promise<Agent> {
  const { ownership, refused } = await restoreUnsaved(store, taken, options.fallbackDir)
  const { clock, newId, random, settings, tools, adapters } = checked
  const hooks = createHooks(options.hooks)
  const observer = createBatchObserver(hooks)
  const approvals = createApprovals()
  const turns = createTurns()
  const receipts = createReceipts()
  const waiters = createWaiters()
  const folded = createFold()
  const budgets = createBudgets(checked, () => {
    const limit = budgets.limits?.reached(clock.now())
    if (limit !== undefined) stopFor({ kind: 'limit', limit })
  })
  let lastReason: string | undefined
  let lastDurable: SessionEvent | undefined
  let contextTold = false
  let summary: SummaryUpdate = {}
  /** Between the first record of a macrostep and its end: the batch in hand is not whole. */
  let recording = false

  const take = (event: SessionEvent): void => {
    approvals.place(event)
    budgets.place(event)
    contextTold = contextStands(contextTold, event)
    if (event.type === 'turn/end') lastReason = event.data.reason.kind
  }
  const session = await openSession(store, ownership, {
    now: () => clock.now(),
    limits: { maxSteps: checked.maxSteps, maxParallelToolCalls: checked.maxParallelToolCalls },
    onLoaded(event) {
      lastDurable = event
      folded.push(event)
      observer.load(event)
      take(event)
      receipts.place(event, turns.place(event))
    },
    onSealed(events) {
      for (const event of events) take(event)
      // Before observers are told: what their commands bring about is another batch.
      summary = summaryOf(actor.getSnapshot())
      observer.tell(events)
    },
    onDurable(events) {
      lastDurable = events.at(-1) ?? lastDurable
      for (const event of events) {
        const ended = turns.place(event)
        receipts.place(event, ended)
        inspection?.(event)
        watch.onDurable?.(event, ended)
      }
      waiters.look()
    },
    summary: () => ({ ...summary, ...(lastReason === undefined ? {} : { lastReason }) }),
    held: () => recording,
    mayReplace: () => !stepIsOpen(actor.getSnapshot().value),
    ...(options.storeTimeoutMs === undefined ? {} : { storeTimeoutMs: options.storeTimeoutMs }),
  })

  const snapshot = folded.snapshot()
  const actor = createActor(liveMachine, { snapshot })
  const { inspect } = options
  const inspection = inspect && createInspection({ inspect, actorRef: actor, folding: folded })
  const status = new BehaviorSubject<AgentStatus>(statusOf(snapshot))
  const control = createTurnControl({
    clock,
    settleTimeoutMs: checked.settleTimeoutMs,
    onSettleTimeout: (partial) => {
      const { turn } = actor.getSnapshot().context
      actor.send({ type: 'verdict.settle', turn, ...(partial === undefined ? {} : { partial }) })
    },
  })
  portsOf.set(actor, {
    write(events) {
      recording = true
      return session.record(events)
    },
    openTurn: control.openTurn,
    abortTurn: control.abortTurn,
    closeTurn: control.closeTurn,
  })

  const isOver = (): boolean => status.value === 'failed' || status.value === 'closed'
  const setStatus = (next: AgentStatus): void => {
    if (status.value === next || isOver()) return
    status.next(next)
    hooks.tell('agent/status', next)
  }
  const die = (error: unknown): void => {
    if (isOver()) return
    budgets.arm(false, 0)
    actor.stop()
    closing.fail(error)
    control.abandon(error)
    setStatus('failed')
    receipts.fail(error)
    waiters.fail(error)
  }
  actor.subscribe({
    next(reached) {
      recording = false
      session.seal()
      setStatus(statusOf(reached))
      budgets.arm(status.value === 'running', reached.context.turn)
      waiters.look()
    },
    // A defect: the batch in hand was never whole, so it is not kept, and neither is the claim to the log.
    error(error) {
      die(error)
      void ownership.release().catch(() => {})
    },
  })
  const onStoreFailed = (): void => {
    const failure: PawlError = session.failed.reason
    const { id: sessionId, header, epoch, head: expectedSeq } = session
    const after = lastDurable === undefined ? null : eventDigest(lastDurable)
    const events = session.unflushed()
    saveUnsaved(
      { format: 1, sessionId, createdAt: header.createdAt, epoch, expectedSeq, after, events },
      failure,
      options.fallbackDir,
    )
    die(failure)
    // Dead, it only keeps the session from whoever would carry it on.
    void ownership.release().catch(() => {})
  }
  session.failed.addEventListener('abort', onStoreFailed, { once: true })

  const stopFor = (cause: BoundCause): void => {
    const { turn } = actor.getSnapshot().context
    actor.send({ type: 'command.cancel', cause, keepInbox: true, turn })
  }
  const disposers: (() => void | Promise<void>)[] = []
  const closing = createClosing({
    session,
    actor,
    waiters,
    clock,
    onStopped(reason) {
      budgets.arm(false, 0)
      control.abandon(reason)
      receipts.fail(reason)
    },
    async onClosed() {
      setStatus('closed')
      status.complete()
      waiters.look()
      for (const dispose of disposers) await contained('disposing a plug-in', dispose)
    },
  })
  const runtime: AgentRuntime = {
    session,
    clock,
    random,
    newId,
    settings,
    hooks,
    tools,
    adapterOf: (provider, model) => adapters.get(adapterKey(provider, model)),
    get turn() {
      return control.open
    },
    digester: createRequestDigester(),
    closing: closing.signal,
    append: (event) => session.append(event),
    steer: (message) => agent.steer(message),
    inject: (message) => agent.inject(message),
    limits: budgets.limits,
    repeats: budgets.repeats,
    stopFor,
    progress: () => {},
    noteError: observer.noteError,
    headerLogged: false,
    get contextStands() {
      return contextTold
    },
  }
  bindRuntime(actor, runtime)

  const onCrashOf = (callId: string) =>
    tools.get(callOf(actor.getSnapshot().context, callId)?.name ?? '')?.onCrash ?? 'unknown'
  const agent = createFacade({
    session,
    actor,
    hooks,
    approvals,
    receipts,
    waiters,
    status,
    closing,
    clock,
    newId,
    onCrashOf,
    fork: (forkOptions) => forkSession(store, session, newId, forkOptions),
  })
  for (const plugin of options.plugins ?? []) {
    await contained('a plug-in', () => {
      const dispose = plugin(agent)
      if (dispose !== undefined) disposers.push(dispose)
    })
  }
  for (const error of refused) hooks.tell('agent/error', { turn: snapshot.context.turn, error })

  actor.start()
  const mailbox = createMailbox({
    session,
    approvals,
    now: () => clock.now(),
    onCrashOf,
    snapshot: () => actor.getSnapshot(),
    send: (command) => actor.send(command),
  })
  const resumed = resumption(snapshot, checked)
  if (resumed !== undefined) {
    const cancel = mailbox.takeCancel(ownership.posted ?? [])
    actor.send({
      type: 'command.resume',
      resumed: { ...resumed, version: VERSION, chart: chartHash },
      ...(cancel === undefined ? {} : { cancel }),
    })
  }
  // Only the store can fail here, and then the session fails with it.
  void mailbox.serve(ownership.commands(AbortSignal.any([closing.signal, session.failed]))).catch(die)
  return agent
}

const stepIsOpen = (value: unknown): boolean => value === 'toolExec' || typeof value !== 'string'

/** What a plug-in throws changes no outcome; it is a warning of the process. */
async function contained(what: string, run: () => void | Promise<void>): Promise<void> {
  try {
    await run()
  } catch (thrown) {
    process.emitWarning(`${what} failed: ${String(thrown)}`, 'PawlPluginWarning')
  }
}
