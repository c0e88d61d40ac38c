/**
 * What each command and verdict records: pure, context and input to events. Every record holds its consequences, so
 * that durable events need not record; in one record at most one event changes state, the last moving one.
 */
import {
  type EventMap,
  type InboxItem,
  isBound,
  MAX_EVENT_BYTES,
  type Queue,
  type Recordable,
  type StepOutcome,
  type TurnEndReason,
} from '../log/events.ts'
import { utf8Bytes } from '../log/json.ts'
import type { AssistantMessage, ContentBlock, LlmFailure, UserMessage } from '../log/messages.ts'
import type { Answer, PreparedDecision, Verdict } from '../services/verdicts.ts'
import type { AgentCommand, CancelCommand } from './commands.ts'
import { type AgentContext, evolveAll, isMessage, owed, pending } from './evolve.ts'

type Events = readonly Recordable[]
type Of<U, T> = Extract<U, { readonly type: T }>

const NOTHING: Events = []
const QUEUES = ['next-step', 'next-turn'] as const satisfies readonly Queue[]

/** The events, and what follows once they are in the log. */
export const followedBy = (context: AgentContext, events: Events, next: (context: AgentContext) => Events): Events => [
  ...events,
  ...next(evolveAll(context, events)),
]

// What every state records with

const inStep = ({ turn, step }: AgentContext) => ({ turn, step })

const startTurn = ({ turn }: AgentContext): Recordable => ({ type: 'turn/start', data: { turn: turn + 1 } })

export const endStep = (context: AgentContext, outcome: StepOutcome): Recordable => ({
  type: 'step/end',
  data: { ...inStep(context), outcome },
})

const splice = (
  queue: Queue,
  start: number,
  deleteCount: number,
  inserted: readonly InboxItem[],
  more: { readonly outcome?: 'claimed' | 'canceled'; readonly wake?: true } = {},
): Recordable => ({
  type: 'agent/inbox/spliced',
  data: { mutation: 'splice', queue, start, deleteCount, inserted, ...more },
})

/** Puts items at the end of a queue. */
export const enqueue = (context: AgentContext, queue: Queue, items: readonly InboxItem[], wake = false): Recordable =>
  splice(queue, context.inbox[queue].length, 0, items, wake ? { wake: true } : {})

/** Drops what matches, a run of neighbours at a time and from the end, so that the starts stay true. */
function drop(context: AgentContext, queue: Queue, matches: (item: InboxItem) => boolean): Events {
  const items = context.inbox[queue]
  const events: Recordable[] = []
  for (let end = items.length; end > 0; ) {
    const matching = (index: number) => matches(items[index] as InboxItem)
    if (!matching(end - 1)) {
      end--
      continue
    }
    let start = end - 1
    while (start > 0 && matching(start - 1)) start--
    events.push(splice(queue, start, end - start, [], { outcome: 'canceled' }))
    end = start
  }
  return events
}

const dropAll = (context: AgentContext): Events => QUEUES.flatMap((queue) => drop(context, queue, () => true))

/** A turn's end takes along the references to results that nobody will be asked about. */
export const endTurn = (context: AgentContext, reason: TurnEndReason): Events => [
  ...drop(context, 'next-step', (item) => !isMessage(item)),
  { type: 'turn/end', data: { turn: context.turn, reason } },
]

/** All of next-step and, at the opening of a turn, one of next-turn. */
const claim = ({ inbox }: AgentContext, opening: boolean): Events => [
  ...(inbox['next-step'].length > 0
    ? [splice('next-step', 0, inbox['next-step'].length, [], { outcome: 'claimed' })]
    : NOTHING),
  ...(opening && inbox['next-turn'].length > 0 ? [splice('next-turn', 0, 1, [], { outcome: 'claimed' })] : NOTHING),
]

/** Claimed messages that did not enter go back to the head of their queues. */
const putBack = ({ claimed }: AgentContext): Events =>
  QUEUES.flatMap((queue) => {
    const items = claimed.filter((entry) => entry.queue === queue && isMessage(entry.item)).map(({ item }) => item)
    let at = 0
    return inLoads(items).map((load) => {
      const start = at
      at += load.length
      return splice(queue, start, 0, load)
    })
  })

/** Each message fits one event of the log; all of them together may not. */
const MAX_LOAD_BYTES = MAX_EVENT_BYTES - 1_024

function inLoads(items: readonly InboxItem[]): readonly (readonly InboxItem[])[] {
  const loads: InboxItem[][] = []
  let left = 0
  for (const item of items) {
    const bytes = 1 + utf8Bytes(JSON.stringify(item))
    const last = loads.at(-1)
    if (last === undefined || bytes > left) {
      loads.push([item])
      left = MAX_LOAD_BYTES - bytes
    } else {
      last.push(item)
      left -= bytes
    }
  }
  return loads
}

const stepsSpent = ({ step, limits }: AgentContext): boolean => step >= limits.maxSteps

/** How a turn ends that nothing cut short. */
export const ownReason = ({ maxTokens }: AgentContext): TurnEndReason => ({
  kind: maxTokens ? 'max-tokens' : 'completed',
})

const errorReason = (error: LlmFailure): TurnEndReason => ({ kind: 'error', error })

/** A cancelled turn's end: aborted, or by the bound that cancelled it. */
function endCancelled(context: AgentContext, { cause, keepInbox }: NonNullable<AgentContext['cancel']>): Events {
  const reason: TurnEndReason = isBound(cause) ? cause : { kind: 'aborted', cause }
  return keepInbox ? followedBy(context, putBack(context), (after) => endTurn(after, reason)) : endTurn(context, reason)
}

const endInterrupted = (context: AgentContext): Events =>
  followedBy(context, putBack(context), (after) =>
    endTurn(after, { kind: 'interrupted', ...(context.interrupted ?? {}) }),
  )

/** The turn goes on if and only if something waits for its next step. */
const goOn = (context: AgentContext, otherwise: TurnEndReason): Events =>
  context.inbox['next-step'].length === 0 || stepsSpent(context) ? endTurn(context, otherwise) : claim(context, false)

// Idle, and the messages that come in

/** Idle starts what is owed by itself, but not what an interrupting recovery left. */
export const startOwed = (context: AgentContext): Events =>
  owed(context) && context.interrupted === null ? [startTurn(context)] : NOTHING

type Delivery = Of<AgentCommand, 'command.followup' | 'command.steer' | 'command.inject'>

const asItem = (message: UserMessage): InboxItem => ({ kind: 'message', message })

const queueOf = ({ type }: Delivery): Queue => (type === 'command.followup' ? 'next-turn' : 'next-step')

const wakes = ({ type }: Delivery): boolean => type !== 'command.inject'

/** In idle a waking message opens a turn at once. */
export const deliverIdle = (context: AgentContext, command: Delivery): Events => [
  enqueue(context, queueOf(command), [asItem(command.message)], wakes(command)),
  ...(wakes(command) ? [startTurn(context)] : NOTHING),
]

/** While a cancel is in progress, what wakes is for the turn after it. */
export const deliver = (context: AgentContext, command: Delivery): Events => [
  enqueue(
    context,
    context.cancel !== null && wakes(command) ? 'next-turn' : queueOf(command),
    [asItem(command.message)],
    wakes(command),
  ),
]

export function remove(context: AgentContext, command: Of<AgentCommand, 'command.remove'>): Events {
  for (const queue of QUEUES) {
    const at = context.inbox[queue].findIndex((item) => isMessage(item) && item.message.id === command.id)
    const inserted = command.replacement === undefined ? [] : [asItem(command.replacement)]
    if (at >= 0) return [splice(queue, at, 1, inserted, { outcome: 'canceled' })]
  }
  return NOTHING
}

export const clear = (context: AgentContext): Events => QUEUES.flatMap((queue) => drop(context, queue, isMessage))

export const wake = (context: AgentContext): Events => (pending(context) ? [startTurn(context)] : NOTHING)

/** In idle there is only the inbox to cancel. */
export const cancelIdle = (context: AgentContext, command: CancelCommand): Events =>
  command.keepInbox ? NOTHING : dropAll(context)

/** The first cancel of a turn is recorded; every one clears the queues, unless they are to be kept, as for a bound. */
export function cancel(
  context: AgentContext,
  command: Pick<CancelCommand, 'cause' | 'keepInbox'>,
  next: (context: AgentContext) => Events = () => NOTHING,
): Events {
  const keeps = command.keepInbox === true || isBound(command.cause)
  const clears = keeps ? NOTHING : dropAll(context)
  if (context.cancel !== null) return clears
  const data = { turn: context.turn, cause: command.cause, ...(keeps ? { keepInbox: true as const } : {}) }
  return followedBy(context, [{ type: 'turn/cancel', data }, ...clears], next)
}

export const resume = (context: AgentContext, command: Of<AgentCommand, 'command.resume'>): Events => [
  ...(command.cancel === undefined ? NOTHING : cancel(context, command.cancel)),
  { type: 'session/resumed', data: command.resumed },
]

export const suspend = (): Events => [{ type: 'session/suspended', data: {} }]

// From the opening of a turn to the opening of a step

/** What waits is claimed; with nothing there the turn is over before it began. */
export function openTurn(context: AgentContext): Events {
  const claims = claim(context, true)
  return claims.length > 0 ? claims : endTurn(context, { kind: 'completed' })
}

/** Enters the step, or ends the turn: `agent/pre-step` decided. */
export function enterStep(context: AgentContext, decision: PreparedDecision): Events {
  if (context.cancel !== null) return endCancelled(context, context.cancel)
  switch (decision.kind) {
    case 'failed':
      return endTurn(context, errorReason(decision.failure))
    case 'reject':
      return endTurn(context, {
        kind: 'blocked',
        ...(decision.reason === undefined ? {} : { reason: decision.reason }),
      })
    case 'enter':
      return enterWith(context, decision.messages)
  }
}

/** With no message and no result to tell the model of, there is nothing to ask it. */
function enterWith(context: AgentContext, messages: readonly UserMessage[]): Events {
  const resultsOwed = context.claimed.some(({ item }) => !isMessage(item))
  if (messages.length === 0 && !resultsOwed) return endTurn(context, ownReason(context))
  return [
    { type: 'step/start', data: { turn: context.turn, step: context.step + 1 } },
    ...messages.map((message): Recordable => ({ type: 'user/message', data: message, surfaceOp: 'append' })),
  ]
}

/** A crash, or a cancel that a crash cut short, ends a turn that has no step open. */
export const finishTurn = (context: AgentContext): Events =>
  context.cancel !== null ? endCancelled(context, context.cancel) : endInterrupted(context)

// The request

/** What a person saw of an answer that was cut off: text and reasoning, if there is any. */
const visible = (content: readonly ContentBlock[]): readonly ContentBlock[] =>
  content.filter(
    (block) =>
      (block.type === 'text' || block.type === 'reasoning') && 'text' in block && String(block.text).trim() !== '',
  )

function interruptedMessage(context: AgentContext, answer: Answer | undefined): Events {
  if (answer === undefined) return NOTHING
  const content = visible(answer.message.content)
  if (content.length === 0) return NOTHING
  const { kind, provider, model } = answer.message.source
  const message: AssistantMessage = { ...answer.message, content, source: { kind, provider, model } }
  return [assistantMessage(context, { ...answer, message }, [], true)]
}

type Draft<T> = { -readonly [K in keyof T]: T[K] }

function assistantMessage(
  { turn, step, attempt }: AgentContext,
  { message, finish, usage, chunkSeqs }: Answer,
  calls: Of<Verdict, 'verdict.answered'>['calls'],
  interrupted = false,
): Recordable {
  // Written out: a spread makes an object of its own hidden class, and freezing it another.
  const data: Draft<EventMap['assistant/message']> = {
    turn,
    step,
    attempt,
    message,
    finish,
    calls,
  }
  if (usage !== undefined) data.usage = usage
  if (interrupted) data.interrupted = true
  return { type: 'assistant/message', data, surfaceOp: 'append', sourceEventSeqs: chunkSeqs }
}

/** A cancelled request ends its step with what it had. */
export const abortStep = (context: AgentContext, partial?: Answer): Events => [
  ...interruptedMessage(context, partial),
  endStep(context, { kind: 'aborted' }),
]

/** The model answered: its calls are scheduled, or the step is over. */
export function answer(context: AgentContext, verdict: Of<Verdict, 'verdict.answered'>): Events {
  if (context.cancel !== null) return abortStep(context, verdict.answer)
  const message = assistantMessage(context, verdict.answer, verdict.calls)
  if (verdict.calls.length === 0) {
    const cut = verdict.answer.finish.kind === 'max-tokens'
    return [message, endStep(context, { kind: cut ? 'max-tokens' : 'completed' })]
  }
  return verdict.bound === undefined ? [message] : [...cancel(context, { cause: verdict.bound }), message]
}

/** The request stopped without an answer. Only a cancel stops one. */
export const abandon = (context: AgentContext, partial?: Answer): Events =>
  context.cancel !== null
    ? abortStep(context, partial)
    : failStep(context, { code: 'ABORTED', message: 'The model stopped answering without saying why' })

export const failStep = (context: AgentContext, failure: LlmFailure): Events =>
  context.cancel !== null ? abortStep(context) : [endStep(context, { kind: 'error', error: failure })]

export const retry = (context: AgentContext, verdict: Of<Verdict, 'verdict.retry'>): Events =>
  context.cancel !== null
    ? abortStep(context)
    : [{ type: 'llm/retry', data: { ...inStep(context), attempt: context.attempt, ...verdict.retry } }]

export function startRetry(context: AgentContext): Events {
  if (context.retry === null) return NOTHING
  const { retryId, retry: number } = context.retry
  const data = { ...inStep(context), attempt: context.attempt + 1, retryId, retry: number }
  return [{ type: 'llm/retry-started', data }]
}

/** On resume: an open step that is not carried on. */
export const finishStep = (context: AgentContext): Events => [
  endStep(context, { kind: context.cancel !== null ? 'aborted' : 'interrupted' }),
]

// Between steps, and the end of a turn

export function closeStep(context: AgentContext): Events {
  if (context.cancel !== null) return endCancelled(context, context.cancel)
  switch (context.outcome?.kind) {
    case 'error':
      return endTurn(context, errorReason(context.outcome.error))
    case 'interrupted':
      return endInterrupted(context)
    case 'tool-calls':
      return stepsSpent(context) ? endSpent(context) : goOn(context, ownReason(context))
    default:
      return goOn(context, ownReason(context))
  }
}

export const failStopping = (context: AgentContext, failure: LlmFailure): Events =>
  context.cancel !== null ? endCancelled(context, context.cancel) : endTurn(context, errorReason(failure))

const endSpent = (context: AgentContext): Events =>
  endTurn(context, { kind: 'max-steps', maxSteps: context.limits.maxSteps })

/**
 * The hooks had their say: a message they left wins over the reason they gave. When the steps are spent it ends the
 * turn instead, so that a hook which always steers cannot go on for ever, turn after turn.
 */
export function stop(context: AgentContext, verdict: Of<Verdict, 'verdict.stopping'>): Events {
  if (verdict.failure !== undefined) return failStopping(context, verdict.failure)
  if (context.cancel !== null) return endCancelled(context, context.cancel)
  const steered = context.inbox['next-step'].length > 0
  return steered && stepsSpent(context) ? endSpent(context) : goOn(context, verdict.reason ?? ownReason(context))
}
