/** Contexts and their parts, for tests of what is recorded in them. */
import type { InboxItem, Recordable } from '../../src/log/events.ts'
import type { UserMessage } from '../../src/log/messages.ts'
import { type AgentContext, type Call, initialContext } from '../../src/machines/evolve.ts'
import type { Answer } from '../../src/services/verdicts.ts'

export const message = (id: string): UserMessage => ({
  id,
  role: 'user',
  content: [{ type: 'text', text: id }],
  source: { kind: 'user' },
})

export const item = (id: string): InboxItem => ({ kind: 'message', message: message(id) })

export const owed = (callId: string): InboxItem => ({ kind: 'tool-result', turn: 1, callId })

export const queues = (nextStep: readonly InboxItem[], nextTurn: readonly InboxItem[] = []): AgentContext['inbox'] => ({
  'next-step': nextStep,
  'next-turn': nextTurn,
})

export const idle: AgentContext = initialContext

/** A turn that has opened no step yet. */
export const inTurn: AgentContext = { ...idle, turn: 1, limits: { maxSteps: 3, maxParallelToolCalls: 2 } }

/** Its first step. */
export const inStep: AgentContext = { ...inTurn, step: 1, attempt: 1 }

export const cancelled = (keepInbox = false) => ({ cancel: { cause: { kind: 'user' as const }, keepInbox } })

export const call = (callId: string, more: Partial<Call> = {}): Call => ({
  callId,
  name: 'work',
  arguments: '{}',
  mode: 'parallel',
  status: 'planned',
  run: 0,
  ...more,
})

export const answer = (text: string, more: Partial<Answer> = {}): Answer => ({
  message: {
    id: 'a1',
    role: 'assistant',
    content: [{ type: 'text', text }],
    source: { kind: 'model', provider: 'demo', model: 'demo' },
  },
  finish: { kind: 'stop' },
  chunkSeqs: [],
  ...more,
})

export const typesOf = (events: readonly Recordable[]): readonly string[] => events.map(({ type }) => type)

/** A record in short: splices as what they did to which queue, endings with their reason, results with their code. */
export const inShort = (events: readonly Recordable[]): readonly string[] => events.map(shortOf)

function shortOf(event: Recordable): string {
  switch (event.type) {
    case 'agent/inbox/spliced': {
      const { queue, start, deleteCount, inserted, outcome, wake } = event.data
      const names = inserted.map((each) => (each.kind === 'message' ? each.message.id : `result of ${each.callId}`))
      const took = deleteCount > 0 ? ` ${outcome} ${deleteCount}` : ''
      return `${queue}@${start}${took}${names.length > 0 ? ` + ${names.join(', ')}` : ''}${wake ? ' wake' : ''}`
    }
    case 'turn/end':
      return `turn/end ${event.data.reason.kind}`
    case 'step/end':
      return `step/end ${event.data.outcome.kind}`
    case 'tool/call':
      return `tool/call ${event.data.callId}`
    case 'tool/dispatch':
      return `tool/dispatch ${event.data.callId} run ${event.data.run} ${event.data.onCrash}`
    case 'tool/approval-requested':
      return `tool/approval-requested ${event.data.callId} ${event.data.purpose} ${event.data.run}`
    case 'tool/approval-resolved':
      return `tool/approval-resolved ${event.data.callId} ${event.data.decision}`
    case 'tool/result': {
      const { message, error } = event.data
      const plain = message.content[0].isError ? 'failed' : 'ok'
      return `tool/result ${message.source.callId} ${error?.code ?? plain}`
    }
    default:
      return event.type
  }
}
