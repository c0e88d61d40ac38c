/** What the users of an agent do through its API. */
import type { Agent, PendingApproval } from '../../../src/agent.ts'
import { InvalidEvent } from '../../../src/log/errors.ts'
import type { CancelCause } from '../../../src/log/events.ts'
import { isMessage } from '../../../src/machines/evolve.ts'
import type { Host } from './host.ts'
import { checkResult, follow, read } from './receipts.ts'
import type { Scene } from './scene.ts'

interface At {
  readonly scene: Scene
  readonly host: Host
  readonly agent: Agent
}

type Act = (at: At) => void

const deliver =
  (kind: 'followup' | 'steer' | 'inject'): Act =>
  ({ scene, host, agent }) =>
    follow(scene, host, agent[kind](`${kind} ${scene.world.id('m')}`))

/** The same request twice is one message; with other words it is refused. */
const again: Act = ({ scene, host, agent }) => {
  const requestId = scene.world.id('r')
  const first = agent.followup('Said twice', { requestId })
  const second = agent.steer('Said twice', { requestId })
  follow(scene, host, first)
  follow(scene, host, second)
  let refused = false
  try {
    agent.followup('Other words', { requestId })
  } catch {
    refused = true
  }
  scene.world.must(refused, 'DUPLICATE', () => `${host.name}: another message took the id of ${requestId}`)
}

const runs: Act = ({ scene, host, agent }) => {
  const { world } = scene
  const leaves = world.tape.chance(0.4) ? new AbortController() : undefined
  const id = world.id('run ')
  const running = agent.run(id, leaves === undefined ? {} : { signal: leaves.signal })
  scene.expect(host.process, `${id} in ${host.name}`, running, (result) => checkResult(scene, host, id, result))
  const { process } = host
  if (leaves !== undefined) world.turn(process, `the caller of ${id} leaves`).then(() => leaves.abort())
}

const CAUSES: readonly CancelCause[] = [
  { kind: 'user' },
  { kind: 'parent' },
  { kind: 'hook', reason: 'A hook wants it' },
  { kind: 'disposed' },
]

const cancels: Act = ({ scene, host, agent }) => {
  const { world, truth } = scene
  const keepInbox = world.tape.chance(0.4)
  const { value, context } = agent.actor.getSnapshot()
  const done = agent.cancel(world.tape.pick(CAUSES), { keepInbox })
  const label = `cancel of turn ${context.turn} in ${host.name}`
  scene.expect(host.process, label, done, () => {
    if (value === 'idle') return
    const ended = truth.sessions
      .get(host.sessionId)
      ?.log.find((event) => event.type === 'turn/end' && event.data.turn === context.turn)
    if (ended === undefined) return void world.breach('CANCEL', `${label}: settled, and the turn has no end in the log`)
    truth.isKnown(host.process, host.sessionId, ended.seq, label)
  })
}

/** Answers a question; now and then another than was asked. */
const answers: Act = ({ scene, host, agent }) => {
  const { tape } = scene.world
  const open = agent.approvals()
  if (open.length === 0) return deliver('steer')({ scene, host, agent })
  const asked = tape.pick(open)
  answer(scene, host, agent, tape.chance(0.1) ? { ...asked, argumentsDigest: 'sha256:0' } : asked)
}

export function answer(scene: Scene, host: Host, agent: Agent, asked: PendingApproval): void {
  const { truth, world } = scene
  const { callId, run, argumentsDigest: digest } = asked
  const decision = world.tape.chance(0.35) ? 'denied' : 'approved'
  const done = decision === 'approved' ? agent.approve(callId, { digest, run }) : agent.deny(callId, { digest, run })
  const label = `${decision} ${callId}.${run} in ${host.name}`
  scene.expect(host.process, label, done, () => {
    const found = truth.sessions
      .get(host.sessionId)
      ?.log.findLast(
        ({ type, data }) =>
          type === 'tool/approval-resolved' && data.callId === callId && data.run === run && data.decision === decision,
      )
    if (found === undefined) return void world.breach('APPROVAL', `${label}: it is not in the log`)
    truth.isKnown(host.process, host.sessionId, found.seq, label)
  })
}

const changesInbox: Act = ({ scene, agent }) => {
  const { tape } = scene.world
  const waiting = [...agent.inbox.nextStep, ...agent.inbox.nextTurn].filter(isMessage)
  const kind = tape.pick(['remove', 'replace', 'clear'] as const)
  if (kind === 'clear' || waiting.length === 0) return agent.inbox.clear()
  const { id } = tape.pick(waiting).message
  if (kind === 'remove') agent.inbox.remove(id)
  else agent.inbox.replace(id, 'Put in its place')
}

const forks: Act = ({ scene, host, agent }) => {
  const { world, sessions } = scene
  if (sessions.length >= 6) return deliver('followup')({ scene, host, agent })
  const { head } = agent.session
  const at = world.tape.chance(0.5) ? {} : { at: Math.floor(world.tape.draw() * (head + 1)) }
  const forked = agent.fork({ ...at, sessionId: world.id('f') })
  scene.expect(host.process, `fork of ${host.name}`, forked, ({ sessionId }) => {
    world.count('forks')
    sessions.push(sessionId)
  })
}

const closes: Act = ({ scene, host, agent }) => {
  const { tape } = scene.world
  const cancel = tape.chance(0.3) ? { cancel: { kind: 'disposed' } as const } : {}
  const grace = tape.chance(0.3) ? { graceMs: 0 } : {}
  scene.expect(host.process, `close of ${host.name}`, agent.close({ ...cancel, ...grace }))
}

const waits: Act = ({ scene, host, agent }) => {
  const kind = scene.world.tape.pick(['whenIdle', 'whenQuiet'] as const)
  scene.expect(host.process, `${kind} of ${host.name}`, agent[kind]())
}

const notes: Act = ({ agent }) => void agent.session.note('sim/note', { at: agent.session.head })

/** Compaction: the newest messages that entered become one, where that may be. */
const replaces: Act = ({ scene, host, agent }) => {
  const log = scene.truth.sessions.get(host.sessionId)?.log ?? []
  const entered = log.findLast(({ type }) => type === 'user/message')
  if (entered === undefined) return
  try {
    agent.session.replace({ start: entered.seq, end: entered.seq, message: 'In short' })
    scene.world.count('replaced')
  } catch (error) {
    // While a step is open, and of what is no longer in the conversation.
    if (!(error instanceof InvalidEvent)) throw error
  }
}

const ACTS: readonly (readonly [weight: number, choice: readonly [name: string, act: Act]])[] = [
  [16, ['followup', deliver('followup')]],
  [12, ['steer', deliver('steer')]],
  [6, ['inject', deliver('inject')]],
  [7, ['run', runs]],
  [3, ['requestId', again]],
  [8, ['cancel', cancels]],
  [20, ['answer', answers]],
  [5, ['inbox', changesInbox]],
  [4, ['wake', ({ agent }) => agent.wake()]],
  [4, ['fork', forks]],
  [5, ['close', closes]],
  [3, ['wait', waits]],
  [2, ['read', ({ scene, host, agent }) => read(scene, host, agent, scene.world.tape.chance(0.6))]],
  [2, ['note', notes]],
  [2, ['replace', replaces]],
]

/** One of its users does something with a living agent. */
export async function actAsOwner(scene: Scene, host: Host, agent: Agent): Promise<void> {
  const [name, act] = scene.world.tape.weighted(ACTS)
  scene.world.tell(`${host.name}: a user: ${name}`)
  scene.world.count(`act ${name}`)
  await scene.world.run(host.process, () => {
    try {
      act({ scene, host, agent })
    } catch (error) {
      scene.rejected(`${name} of ${host.name}`, error)
    }
  })
  if (agent.status === 'closed') host.state = 'over'
}
