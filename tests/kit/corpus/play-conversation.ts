/** Agents and a server act out a file, act by act; what they come to is looked at wherever the file says so. */
import { createAgent } from '../../../src/agent.ts'
import { InvalidLog, PawlError } from '../../../src/log/errors.ts'
import type { SessionEvent } from '../../../src/log/events.ts'
import type { Json } from '../../../src/log/json.ts'
import { textOf } from '../../../src/log/messages.ts'
import { createSurface } from '../../../src/log/projections/surface.ts'
import { memoryStore } from '../../../src/log/stores/memory.ts'
import { verify } from '../../../src/machines/verify.ts'
import { scripted } from '../../../src/services/adapters/scripted.ts'
import { ofType, settle, stored } from '../agents.ts'
import type { ConversationFile, CorpusAct } from './format.ts'
import { difference } from './match.ts'
import { Mismatch, type Played } from './played.ts'
import { type Actor, type Stage, stageOf } from './stage.ts'

/** @throws Mismatch naming the act at which something else came than expected. */
export async function playConversation(file: ConversationFile): Promise<Played> {
  await using stage = await stageOf(file)
  for (const actor of stage.actors) await stage.open(actor)
  for (const [i, act] of file.play.entries()) {
    const found = await perform(act, stage)
    const wrong = found ?? stage.complaints[0]
    if (wrong !== undefined) throw new Mismatch(`act ${i}, ${JSON.stringify(act).slice(0, 80)}: ${wrong}`)
  }
  for (const actor of stage.actors) await checkEnd(actor)
  if (stage.complaints[0] !== undefined) throw new Mismatch(stage.complaints[0])
  return { splits: 0, http: true }
}

/** What is wrong, if anything is. */
async function perform(act: CorpusAct, stage: Stage): Promise<string | undefined> {
  if ('expect' in act) return lookAt(act.expect, stage)
  if ('advance' in act) {
    stage.clock.advance(act.advance)
    await settle()
    return undefined
  }
  const found = await Promise.all(stage.actors.map((actor) => performOne(act, actor, stage)))
  return found.find((wrong) => wrong !== undefined)
}

type OwnAct = Exclude<CorpusAct, { expect: unknown } | { advance: unknown }>

async function performOne(act: OwnAct, actor: Actor, stage: Stage): Promise<string | undefined> {
  if ('open' in act) return act.open === true ? void (await stage.open(actor)) : refused(act.open, actor)
  if ('damage' in act) return void (await damage(act.damage, actor))
  const { started } = actor
  if (started === undefined) throw new Error('The process is gone: open it first')
  const { agent } = started
  if ('run' in act) await agent.run(act.run)
  else if ('followup' in act) agent.followup(act.followup)
  else if ('wait' in act) await (act.wait === 'quiet' ? agent.whenQuiet() : agent.whenIdle())
  else if ('until' in act) await until(act, actor)
  else if ('cancel' in act) await agent.cancel()
  else if ('approve' in act) await agent.approve(act.approve, { digest: digestOf(act.approve, actor) })
  else if ('deny' in act) {
    const { deny, reason } = act
    await agent.deny(deny, { digest: digestOf(deny, actor), ...(reason !== undefined && { reason }) })
  } else if ('compact' in act) compact(act, actor, await started.log())
  else if ('close' in act) {
    await agent.close()
    actor.started = undefined
  } else {
    await agent.session.flush()
    actor.started = undefined
  }
  return undefined
}

/** Real time: what happens meanwhile is a matter of sockets. */
const PATIENCE_MS = 10_000

async function until({ until: type, count = 1 }: { until: string; count?: number }, actor: Actor): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS
  while ((await logOf(actor)).filter((event) => event.type === type).length < count) {
    if (Date.now() > deadline) throw new Mismatch(`no ${count} ${type} came`)
    await settle(1)
  }
}

const digestOf = (callId: string, { started }: Actor): string =>
  started?.agent.approvals().find((pending) => pending.callId === callId)?.argumentsDigest ?? ''

function compact(
  { compact: message, from, to }: { compact: string; from: number; to: number },
  { started }: Actor,
  log: readonly SessionEvent[],
): void {
  const surface = createSurface()
  for (const event of log) surface.place(event)
  const nodes = surface.nodes()
  started?.agent.session.replace({ start: nodes[from] ?? -1, end: nodes[to] ?? -1, message })
}

/** The log of an actor whose process lives or not. */
async function logOf({ started, store, sessionId }: Actor): Promise<readonly SessionEvent[]> {
  return started === undefined ? stored(store, sessionId) : started.log()
}

async function damage({ result, becomes }: { result: string; becomes: string }, actor: Actor): Promise<void> {
  const events = await stored(actor.store, actor.sessionId)
  const header = await actor.store.header(actor.sessionId)
  if (header === undefined) throw new Error('There is no session to damage')
  actor.store = memoryStore()
  actor.damaged = true
  const owner = await actor.store.acquire(actor.sessionId, { create: header })
  await owner.append(
    events.map((event) => (event.type === 'tool/result' ? redirected(event, result, becomes) : event)),
    { expectedSeq: 0 },
  )
  await owner.release()
}

type Result = Extract<SessionEvent, { type: 'tool/result' }>

function redirected(event: Result, from: string, to: string): Result {
  const { message } = event.data
  if (message.source.callId !== from) return event
  const [block] = message.content
  const changed = {
    ...message,
    source: { ...message.source, callId: to },
    content: [{ ...block, toolCallId: to }],
  } as const
  return { ...event, data: { ...event.data, message: changed } }
}

async function refused({ refused: code, rule }: { refused: string; rule?: string }, actor: Actor) {
  const before = await stored(actor.store, actor.sessionId)
  const thrown = await createAgent({ model: scripted([]), store: actor.store, sessionId: actor.sessionId }).then(
    () => undefined,
    (error: unknown) => error,
  )
  if (!(thrown instanceof PawlError) || thrown.code !== code) return `not refused with ${code} but ${String(thrown)}`
  if (rule !== undefined && !(thrown instanceof InvalidLog && thrown.rule === rule)) return `not for ${rule}: ${thrown}`
  const same = JSON.stringify(before) === JSON.stringify(await stored(actor.store, actor.sessionId))
  return same ? undefined : 'the refused log was changed'
}

async function lookAt(expected: Json, stage: Stage): Promise<string | undefined> {
  const [first] = stage.actors
  if (first === undefined) throw new Error('Nobody is on the stage')
  return difference(expected, { ...(await sightOf(first, stage)), delays: await delaysOf(stage) })
}

/** What a file's `expect` is held against, of its first agent. */
async function sightOf(actor: Actor, { server, clock }: Stage) {
  const events = await logOf(actor)
  const { started, store } = actor
  return {
    status: started?.agent.status,
    requests: server.requests.length,
    bodies: server.requests.map(({ body }) => body),
    timers: clock.pending,
    approvals: started?.agent.approvals().map(({ callId }) => callId),
    reason: ofType(events, 'turn/end').at(-1)?.data.reason,
    answers: ofType(events, 'assistant/message').map(({ data }) => textOf(data.message)),
    results: resultsIn(events),
    callIds: resultsIn(events).map(({ call }) => call),
    runs: Object.fromEntries(actor.runs),
    told: actor.told,
    counts: countsOf(events),
    events,
    summary: await summaryOf(store),
  }
}

const resultsIn = (events: readonly SessionEvent[]) =>
  ofType(events, 'tool/result').map(({ data }) => ({
    call: data.message.source.callId,
    code: data.error?.code,
    text: textOf(data.message.content[0]),
  }))

function countsOf(events: readonly SessionEvent[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (const { type } of events) counts[type] = (counts[type] ?? 0) + 1
  return counts
}

async function summaryOf(store: Actor['store']) {
  for await (const summary of store.list()) return summary
  return undefined
}

async function delaysOf({ actors }: Stage): Promise<readonly number[]> {
  const logs = await Promise.all(actors.map(logOf))
  return logs.flatMap((events) => ofType(events, 'llm/retry').map(({ data }) => data.delayMs))
}

async function checkEnd(actor: Actor): Promise<void> {
  await actor.started?.[Symbol.asyncDispose]()
  if (actor.damaged) return
  const verdict = verify(await stored(actor.store, actor.sessionId))
  if (!verdict.ok) throw new Mismatch(`the log breaks its rules: ${JSON.stringify(verdict.violations)}`)
  for (const [call, times] of actor.runs) if (times > 1) throw new Mismatch(`the call ${call} ran ${times} times`)
}
