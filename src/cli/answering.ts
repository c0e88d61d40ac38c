/**
 * The commands that speak to a session from outside: `pawl approve`, `pawl deny`, `pawl cancel`. They leave their
 * command with the store; the session's owner takes it, now or at the next opening.
 */
import { randomUUID } from 'node:crypto'
import { PawlError, SessionNotFound } from '../log/errors.ts'
import type { KnownEvent } from '../log/events.ts'
import type { Command, LogStore, SessionSummary } from '../log/store.ts'
import { demo } from '../services/adapters/demo.ts'
import { ApprovalRefused } from '../services/errors.ts'
import { oneLine } from '../services/terminal/text.ts'
import type { Console } from './console.ts'
import { openAgent } from './opened.ts'
import { openExistingStore, sessionName, shellWord, storeFlag, storePath } from './settings.ts'

interface AnswerFlags {
  readonly store?: string
  readonly reason?: string
}

/** How long a living owner gets to take a command, in ms. */
const PATIENCE_MS = 10_000

/** Allows or refuses a call that waits for it. */
export async function answer(
  kind: 'approve' | 'deny',
  about: { readonly session: string; readonly callId: string },
  flags: AnswerFlags,
  console: Console,
): Promise<number> {
  const path = storePath(flags.store)
  await using store = openExistingStore(path)
  const { owned, id } = await summaryOf(store, sessionName(about.session))
  const asked = await pendingApproval(store, id, about.callId)
  const { callId, run, argumentsDigest } = asked.data
  const reason = flags.reason === undefined ? {} : { reason: flags.reason }
  const taken = await leave(store, { id, owned }, { kind, callId, run, digest: argumentsDigest, by: 'pawl', ...reason })
  const done = `${kind === 'approve' ? 'approved' : 'denied'} ${oneLine(asked.data.name, 60)} (${oneLine(callId, 100)})`
  const next = taken ? '' : `: \`pawl resume ${shellWord(id)}${storeFlag(path)}\` carries on`
  console.out(`${done}${next}\n`)
  return 0
}

/** Cancels the open turn. Where nobody has the session, it is opened here for as long as that takes. */
export async function cancel(session: string, flags: AnswerFlags, console: Console): Promise<number> {
  const path = storePath(flags.store)
  await using store = openExistingStore(path)
  const { owned, id } = await summaryOf(store, sessionName(session))
  const turn = await openTurn(store, id)
  if (turn === undefined) throw new PawlError(`Session "${id}" has no open turn`, 'SESSION_IDLE')
  const taken = await leave(store, { id, owned }, { kind: 'cancel', turn, cause: { kind: 'user' } })
  if (!taken) await finishHere(store, id)
  console.out(`cancelled turn ${turn} of ${id}\n`)
  return 0
}

async function summaryOf(store: LogStore, session: string): Promise<SessionSummary> {
  for await (const summary of store.list()) if (summary.id === session) return summary
  throw new SessionNotFound(session)
}

type Asked = KnownEvent<'tool/approval-requested'>

/** The question about a call that is still open. @throws ApprovalRefused */
async function pendingApproval(store: LogStore, session: string, callId: string): Promise<Asked> {
  let asked: Asked | undefined
  let decision: KnownEvent<'tool/approval-resolved'>['data']['decision'] | undefined
  let known = false
  const types = ['tool/approval-requested', 'tool/approval-resolved', 'tool/result', 'tool/call']
  for await (const event of store.read(session, { types })) {
    if (event.type === 'tool/result' && event.data.message.source.callId === callId) asked = undefined
    if (!('callId' in event.data) || event.data.callId !== callId) continue
    known = true
    if (event.type === 'tool/approval-requested') {
      asked = event
      decision = undefined
    }
    if (event.type === 'tool/approval-resolved') {
      asked = undefined
      decision = event.data.decision
    }
  }
  if (asked) return asked
  if (decision === 'expired') throw new ApprovalRefused(callId, 'its approval has expired', 'APPROVAL_EXPIRED')
  if (decision) throw new ApprovalRefused(callId, `it was already ${decision}`, 'APPROVAL_ALREADY_RESOLVED')
  const why = known ? 'it waits for no approval' : 'no such call in this session'
  throw new ApprovalRefused(callId, why, 'APPROVAL_NOT_PENDING')
}

async function openTurn(store: LogStore, session: string): Promise<number | undefined> {
  let open: number | undefined
  for await (const event of store.read(session, { types: ['turn/start', 'turn/end'] })) {
    if (event.type === 'turn/start') open = event.data.turn
    if (event.type === 'turn/end') open = undefined
  }
  return open
}

/** Leaves a command. True when a living owner took it; false when nobody has the session. @throws what it was refused with */
async function leave(store: LogStore, session: { id: string; owned: boolean }, command: Command): Promise<boolean> {
  const id = randomUUID()
  await store.post(session.id, { id, ...command })
  if (!session.owned) return false
  const signal = AbortSignal.timeout(PATIENCE_MS)
  const outcome = await store.outcome(session.id, id, signal).catch((error: unknown) => {
    // The owner hangs, or left without taking it: the command stays for the next one.
    if (signal.aborted) return undefined
    throw error
  })
  if (outcome?.kind === 'refused') throw new PawlError(outcome.message, outcome.code)
  return outcome !== undefined
}

/** Opening takes the posted cancel first; a cancelled turn asks no model and starts no tool, so neither is needed. */
async function finishHere(store: LogStore, sessionId: string): Promise<void> {
  const { agent } = await openAgent({ store, sessionId, model: demo(), tools: [] })
  try {
    await agent.whenIdle()
  } finally {
    await agent.close()
  }
}
