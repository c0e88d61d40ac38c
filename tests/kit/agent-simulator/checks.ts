/** What is checked of a world at rest, from outside: its logs, and what became of everything that was posted. */
import type { SessionEvent } from '../../../src/log/events.ts'
import { verify } from '../../../src/machines/verify.ts'
import { patternsOnly } from '../../../src/services/masking/mask.ts'
import { audit } from '../audit.ts'
import { untrustworthy } from '../careful.ts'
import type { Body, MirroredSession, Truth } from './mirror.ts'
import { heard } from './outside-acts.ts'
import type { Letter, Scene } from './scene.ts'

/** Rules that a model which does not keep to the grammar of streams may break. */
const GARBLED = ['STREAM-BLOCKS', 'STREAM-USAGE', 'STREAM-FINISH']

export async function checkAll(scene: Scene): Promise<void> {
  for (const session of scene.truth.sessions.values()) {
    // One that was cut off, or that nobody knows of, is no session.
    if (scene.sessions.includes(session.id)) await checkSession(scene.truth, session)
  }
  for (const letter of scene.letters) await checkLetter(scene, letter)
}

async function checkSession(truth: Truth, session: MirroredSession): Promise<void> {
  const { world, store } = truth
  const stored: SessionEvent[] = []
  for await (const event of store.read(session.id)) stored.push(event)
  world.count('events', stored.length)
  for (const event of stored) if (event.type === 'session/resumed') world.count(`resumed to ${event.data.recovery}`)
  const again = stored.filter(({ type, data }) => type === 'tool/dispatch' && data.run > 1)
  world.count('bodies allowed again', again.length)
  world.must(stored.length === session.log.length, 'STORE', () => `${session.id}: the store forgot events`)
  const untrusted = untrustworthy(stored, patternsOnly)
  world.must(untrusted === undefined, 'UNTRUSTWORTHY', () => `${session.id}: ${untrusted}`)
  const verified = verify(stored)
  if (!verified.ok) {
    const broken = verified.violations.find(({ rule }) => !(session.garbled && GARBLED.includes(rule)))
    if (broken !== undefined) breachAt(truth, session, broken.seq, `VERIFY ${broken.rule}`, broken.message)
  }
  const audited = audit(stored, { done: true, hooks: true, bodies: bodiesOf(truth, session) })
  const [found] = audited.violations
  if (found !== undefined) breachAt(truth, session, found.seq, 'AUDIT', found.message)
  for (const [kind, times] of audited.endings) world.count(`ended ${kind}`, times)
  for (const fate of audited.fates.values()) world.count(`message ${fate}`)
}

function breachAt({ world }: Truth, { id, log }: MirroredSession, seq: number, rule: string, message: string): void {
  const lines = log.slice(Math.max(0, seq - 12), seq + 2).map((event) => `    ${JSON.stringify(event).slice(0, 300)}`)
  world.breach(rule, `${id} seq ${seq}: ${message}\n${lines.join('\n')}`)
}

/** A fork's calls were run where it comes from. */
function bodiesOf(truth: Truth, { bodies, header }: MirroredSession): readonly Body[] {
  const { parentSession, seedLength = 0 } = header
  const parent = parentSession === undefined ? undefined : truth.sessions.get(parentSession)
  const inherited = parent === undefined ? [] : bodiesOf(truth, parent).filter(({ at }) => at <= seedLength)
  return [...inherited, ...bodies]
}

/** A command that the store took is taken or refused, once; a message of it is in the log or it is not, accordingly. */
async function checkLetter(scene: Scene, letter: Letter): Promise<void> {
  const { world, truth } = scene
  const { session, command } = letter
  const log = truth.sessions.get(session)?.log
  if (!letter.sent || log === undefined || !scene.sessions.includes(session)) return
  const signal = new AbortController()
  const waiting = truth.store.outcome(session, command.id, signal.signal)
  const outcome = await Promise.race([
    waiting,
    new Promise<undefined>((resolve) => setImmediate(() => resolve(undefined))),
  ])
  if (outcome === undefined) {
    signal.abort()
    waiting.catch(() => {})
    return void world.breach('LETTER-LOST', `${command.kind} ${command.id} to ${session} has no outcome`)
  }
  heard(scene, letter, outcome)
  const taken = outcome.kind === 'taken'
  world.count(`letter ${outcome.kind === 'taken' ? 'taken' : `refused ${outcome.code}`}`)
  world.must(
    !taken || (outcome.seq ?? -1) < log.length,
    'LETTER-SEQ',
    () => `${command.id}: no seq ${JSON.stringify(outcome)}`,
  )
  if (command.kind === 'followup' || command.kind === 'steer' || command.kind === 'inject') {
    const times = firstInsertions(log, command.message.id)
    world.must(
      times === (taken ? 1 : 0),
      'LETTER-TAKEN',
      () => `${command.id}: ${outcome.kind}, inserted ${times} times`,
    )
  }
  if ((command.kind === 'approve' || command.kind === 'deny') && taken) {
    const event = log[outcome.seq ?? -1]
    const fits = event?.type === 'tool/approval-resolved' && event.data.callId === command.callId
    world.must(fits, 'LETTER-TAKEN', () => `${command.id}: seq ${outcome.seq} is ${event?.type}`)
  }
}

/** How often a message was put into the inbox by somebody, not counting what puts it back. */
function firstInsertions(log: readonly SessionEvent[], id: string): number {
  let times = 0
  let claimed = false
  for (const event of log) {
    if (event.type !== 'agent/inbox/spliced') continue
    const here = event.data.inserted.some((item) => item.kind === 'message' && item.message.id === id)
    if (here && !claimed) times++
    if (here) claimed = true
  }
  return times
}
