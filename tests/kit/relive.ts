/**
 * A recorded session lived again on a fresh agent: the same messages enter the same steps under new ids, tools give what
 * they gave, cancels come where they came, and what the model says is a cassette's.
 */
import { type Agent, type AgentOptions, createAgent } from '../../src/agent.ts'
import type { EventMap, KnownEvent, SessionEvent } from '../../src/log/events.ts'
import type { StreamChunk, ToolResultMessage, UserMessage } from '../../src/log/messages.ts'
import type { RequestHeader } from '../../src/log/requests.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { cassette } from '../../src/services/adapters/cassette.ts'
import type { Hooks } from '../../src/services/hooks/contract.ts'
import type { ToolOutcome } from '../../src/services/tools/contract.ts'
import { tool } from '../../src/services/tools/tool.ts'
import { countingIds, ofType, stored } from './agents.ts'

interface Step {
  readonly entered: UserMessage[]
  readonly results: Map<string, EventMap['tool/result']>
  calls: readonly string[]
  retries: number
  /** Of the attempt in progress. */
  chunks: StreamChunk[]
  header: RequestHeader | undefined
}
type Phase = 'prepare' | 'model' | 'tools'
interface Turn {
  readonly steps: Step[]
  limits: EventMap['turn/start']['limits']
  cancel: { readonly phase: Phase; readonly cause: EventMap['turn/cancel']['cause'] } | undefined
  reason: EventMap['turn/end']['reason'] | undefined
  /** Replacements of the history made before it. */
  readonly replaced: KnownEvent<'user/message'>[]
}

/** What happened, turn by turn. */
function turnsOf(events: readonly SessionEvent[]): readonly Turn[] {
  const turns: Turn[] = []
  let replaced: KnownEvent<'user/message'>[] = []
  let header: RequestHeader | undefined
  let phase: Phase = 'prepare'
  for (const [i, event] of events.entries()) {
    const turn = turns.at(-1)
    const step = turn?.steps.at(-1)
    if (event.type === 'turn/start') {
      turns.push({ steps: [], limits: event.data.limits, cancel: undefined, reason: undefined, replaced })
      replaced = []
      phase = 'prepare'
    } else if (event.type === 'user/message' && typeof event.surfaceOp === 'object') replaced.push(event)
    else if (event.type === 'user/message') step?.entered.push(event.data)
    else if (event.type === 'step/start') {
      turn?.steps.push({ entered: [], results: new Map(), calls: [], retries: 0, chunks: [], header })
      phase = 'model'
    } else if (event.type === 'step/end') phase = 'prepare'
    else if (turn && event.type === 'turn/end') turn.reason = event.data.reason
    else if (turn && event.type === 'turn/cancel') {
      const answered = events[i + 1]?.type === 'assistant/message' && phase === 'model'
      const whole = answered && !(events[i + 1] as KnownEvent<'assistant/message'>).data.interrupted
      turn.cancel = { phase: whole ? 'tools' : phase, cause: event.data.cause }
    } else if (event.type === 'request/header') {
      header = event.data.header
      if (step) step.header = header
    } else if (!step) continue
    else if (event.type === 'assistant/chunk') step.chunks.push(event.data.chunk)
    else if (event.type === 'llm/retry') {
      step.retries += 1
      step.chunks = []
    } else if (event.type === 'session/resumed' && phase === 'model') step.chunks = []
    else if (event.type === 'assistant/message') {
      step.calls = event.data.calls.map(({ callId }) => callId)
      phase = 'tools'
    } else if (event.type === 'tool/result') step.results.set(event.data.message.source.callId, event.data)
  }
  for (const turn of turns) {
    if (turn.reason === undefined || turn.reason.kind === 'interrupted') {
      turn.cancel ??= { phase: turn.steps.at(-1)?.calls.length ? 'tools' : 'model', cause: { kind: 'user' } }
    }
  }
  return turns
}

const outcomeOf = (message: ToolResultMessage): ToolOutcome => {
  const [{ content, isError }] = message.content
  const text = content.map((block) => ('text' in block ? String(block.text) : '')).join('')
  return isError ? { kind: 'error', text } : { kind: 'ok', value: null, content }
}

export interface Relived {
  readonly log: readonly SessionEvent[]
  /** Attempts of the recording that were not played. */
  readonly left: number
}

/** Lives the log again. Its turns have the numbers of the recorded ones; a resumed turn is lived in one go. */
export async function relive(events: readonly SessionEvent[], more: Partial<AgentOptions> = {}): Promise<Relived> {
  const turns = turnsOf(events)
  const model = cassette(events)
  const stepAt = (turn: number, step: number): Step | undefined => turns[turn - 1]?.steps[step - 1]
  const headers = ofType(events, 'request/header').map(({ data }) => data.header)
  const schemas = new Map(headers.flatMap(({ tools = [] }) => tools).map((schema) => [schema.name, schema]))
  let agent: Agent | undefined
  let calls: readonly string[] = []
  const asked = new Map<string, number>()
  const tools = [...schemas.values()].map((schema) =>
    tool({
      ...schema,
      mode: 'parallel',
      execute(_, ctx) {
        if (recordedResult(ctx)?.concludesTurn) ctx.concludeTurn()
      },
    }),
  )
  const recordedResult = (at: { turn: number; step: number; callId: string }) => {
    const step = stepAt(at.turn, at.step)
    return step?.results.get(step.calls[calls.indexOf(at.callId)] ?? '')
  }
  const cancelIn = (turn: number, step: number, phase: Phase): void => {
    const { cancel, steps } = turns[turn - 1] as Turn
    if (cancel?.phase === phase && step >= steps.length) void agent?.cancel(cancel.cause)
  }
  const hooks: Partial<Hooks> = {
    'agent/pre-step'({ turn, step }) {
      const lived = stepAt(turn, step)
      const { reason } = turns[turn - 1] as Turn
      if (!lived) {
        cancelIn(turn, step, 'prepare')
        return { kind: 'reject', ...(reason?.kind === 'blocked' && reason.reason ? { reason: reason.reason } : {}) }
      }
      if (stepAt(turn, step + 1)) agent?.inject('goes on')
      return { kind: 'enter', messages: lived.entered.map((message) => ({ ...message, id: `${message.id}~` })) }
    },
    'system-prompt/assemble': ({ turn, step }) => {
      const { system, tools: shown = [] } = stepAt(turn, step)?.header ?? {}
      return { ...(system === undefined ? {} : { system }), tools: shown }
    },
    'agent/request': ({ turn, step }, next) => {
      const header = stepAt(turn, step)?.header
      if (!header) return next()
      const { reasoningEffort, maxTokens, ...config } = header.config
      const { adapterDefaults: filled } = header
      return {
        ...config,
        ...(reasoningEffort === undefined || filled?.reasoningEffort ? {} : { reasoningEffort }),
        ...(maxTokens === undefined || filled?.maxTokens ? {} : { maxTokens }),
      }
    },
    async *'llm/stream'(_, next) {
      const { turn, step } = at
      const lived = stepAt(turn, step)
      const attempt = (asked.get(`${turn}/${step}`) ?? 0) + 1
      asked.set(`${turn}/${step}`, attempt)
      const last = attempt > (lived?.retries ?? 0) && lived?.chunks.at(-1)?.type !== 'finish'
      let left = lived?.chunks.length ?? 0
      const cancelNow = () => setImmediate(() => cancelIn(turn, step, 'model'))
      if (last && left === 0) cancelNow()
      for await (const chunk of next()) {
        left -= 1
        if (last && left === 0) cancelNow()
        yield chunk
      }
    },
    'agent/request-error'({ turn, step }) {
      const lived = stepAt(turn, step)
      if ((asked.get(`${turn}/${step}`) ?? 0) <= (lived?.retries ?? 0)) return { kind: 'retry' }
      cancelIn(turn, step, 'model')
      return undefined
    },
    async 'tools/execute'(call, next) {
      await next()
      if (call.callId === calls.at(-1)) cancelIn(call.turn, call.step, 'tools')
      const result = recordedResult(call)
      return result ? outcomeOf(result.message) : { kind: 'ok', value: null, content: [] }
    },
    'agent/turn-stopping'({ turn }) {
      const reason = turns[turn - 1]?.reason
      // The hook is only asked of a turn that went well.
      if (reason?.kind === 'error') throw new Error(reason.error.message)
      return reason?.kind === 'stopped-by-policy' ? reason : undefined
    },
  }
  let at = { turn: 1, step: 1 }
  const { maxSteps = 50 } = turns[0]?.limits ?? {}
  const store = memoryStore()
  await using lived = await createAgent({
    store,
    sessionId: 'again',
    model,
    models: model.models,
    tools,
    hooks,
    maxSteps,
    maxParallelToolCalls: 128,
    repeatedCalls: false,
    newId: countingIds('again'),
    ...more,
  })
  agent = lived
  lived.on('session/event', (event) => {
    if (event.type === 'step/start') at = event.data
    if (event.type === 'assistant/message') calls = event.data.calls.map(({ callId }) => callId)
  })
  for (const turn of turns) {
    for (const event of turn.replaced) await replaceAgain(lived, events, event, await stored(store, 'again'))
    await lived.followup('go').turn
    await lived.whenIdle()
    await lived.session.flush()
    // What the recording dropped or a cancel kept is not lived again by itself.
    lived.inbox.clear()
  }
  await lived.session.flush()
  return { log: await stored(store, 'again'), left: model.left }
}

async function replaceAgain(
  agent: Agent,
  events: readonly SessionEvent[],
  event: KnownEvent<'user/message'>,
  log: readonly SessionEvent[],
): Promise<void> {
  if (typeof event.surfaceOp !== 'object') return
  const seqs = (of: readonly SessionEvent[]) => of.filter(({ surfaceOp }) => surfaceOp).map(({ seq }) => seq)
  const again = (seq: number): number => seqs(log)[seqs(events).indexOf(seq)] ?? -1
  const { start, end } = event.surfaceOp
  agent.session.replace({ start: again(start), end: again(end), message: event.data.content })
  await agent.session.flush()
}

/** One attempt as its log tells it. */
export interface Told {
  readonly header: RequestHeader | undefined
  readonly context: EventMap['request/context'] | undefined
  readonly chunks: readonly StreamChunk[]
}

/** The attempts that said something, but for those that were asked again after a crash. */
export function attemptsIn(events: readonly SessionEvent[]): readonly Told[] {
  const told = new Map<string, Told & { readonly chunks: StreamChunk[] }>()
  let asking = ''
  let header: RequestHeader | undefined
  let context: EventMap['request/context'] | undefined
  for (const event of events) {
    if (event.type === 'request/header') header = event.data.header
    else if (event.type === 'request/context') context = event.data
    else if (event.type === 'assistant/chunk') {
      const { turn, step, attempt, chunk } = event.data
      asking = `${turn}/${step}/${attempt}`
      const one = told.get(asking) ?? { header, context, chunks: [] }
      told.set(asking, one)
      one.chunks.push(chunk)
    } else if (event.type === 'session/resumed' && event.data.recovery === 'continue') told.delete(asking)
    else if (event.type === 'llm/retry' || event.type === 'assistant/message' || event.type === 'step/end') asking = ''
  }
  return [...told.values()]
}

/** How each turn ended; one that a crash interrupted is left out, since a life in one go has none. */
export const reasonsOf = (events: readonly SessionEvent[], of: readonly SessionEvent[] = events) => {
  const cut = ofType(of, 'turn/end').filter(({ data }) => data.reason.kind === 'interrupted')
  return ofType(events, 'turn/end')
    .filter(({ data }) => !cut.some((other) => other.data.turn === data.turn))
    .map(({ data }) => data)
}
