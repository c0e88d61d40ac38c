/** Reads a log the way the cases speak of it: who said what, how the inbox changed, where turns and steps lie. */
import type { Agent } from '../../src/agent.ts'
import type { SessionEvent } from '../../src/log/events.ts'
import { textOf, type UserMessage, type UserSource } from '../../src/log/messages.ts'
import { ofType } from './agents.ts'

/** A user's message whose id says which it is; its text is the id unless given. */
export const message = (id: string, text = id, source: UserSource = { kind: 'user' }): UserMessage => ({
  id,
  role: 'user',
  content: [{ type: 'text', text }],
  source,
})

/** The texts that entered the conversation, in order. */
export const userTexts = (log: readonly SessionEvent[]): readonly string[] =>
  ofType(log, 'user/message').map(({ data }) => textOf(data))

/** What each event of the inbox says, without the words they all share. Items are named by message id or call id. */
export const splices = (log: readonly SessionEvent[]): readonly string[] =>
  ofType(log, 'agent/inbox/spliced').map(({ data: { queue, start, deleteCount, inserted, outcome, wake } }) => {
    const items = inserted.map((item) => (item.kind === 'message' ? item.message.id : `result of ${item.callId}`))
    const removes = deleteCount > 0 ? ` -${deleteCount}` : ''
    const inserts = items.length > 0 ? ` +[${items.join(', ')}]` : ''
    return `${queue}@${start}${removes}${inserts}${outcome === undefined ? '' : ` ${outcome}`}${wake ? ' wakes' : ''}`
  })

/** `turn.step` of every step that was opened. */
export const steps = (log: readonly SessionEvent[]): readonly string[] =>
  ofType(log, 'step/start').map(({ data }) => `${data.turn}.${data.step}`)

/** Why each turn ended. */
export const reasons = (log: readonly SessionEvent[]) => ofType(log, 'turn/end').map(({ data }) => data.reason)

/** The part of the log that lies in one turn, its boundaries included. */
export function turnOf(log: readonly SessionEvent[], turn: number): readonly SessionEvent[] {
  const from = log.findIndex((event) => event.type === 'turn/start' && event.data.turn === turn)
  const to = log.findIndex((event) => event.type === 'turn/end' && event.data.turn === turn)
  return from < 0 ? [] : log.slice(from, to < 0 ? undefined : to + 1)
}

/** The texts of what the model was told by persons and plug-ins, of one request. */
export const toldTexts = (request: { readonly messages: readonly SessionMessage[] } | undefined): readonly string[] =>
  (request?.messages ?? []).flatMap((told) =>
    told.role === 'user' && told.source.kind !== 'tool' ? [textOf(told)] : [],
  )

type SessionMessage = Parameters<typeof textOf>[0] & {
  readonly role: string
  readonly source: { readonly kind: string }
}

/** Every status from now on. */
export function statusesOf(agent: Agent): readonly string[] {
  const statuses: string[] = []
  agent.on('agent/status', (status) => statuses.push(status))
  return statuses
}

/** The ids of the messages that wait, and the call ids of the results that do. */
export const idsOf = (items: Agent['inbox']['nextTurn']): readonly string[] =>
  items.map((item) => (item.kind === 'message' ? item.message.id : item.callId))
