/** Leads a world to rest: every session is opened if nobody has it, its questions are answered, and at last it is cancelled. */
import type { Host } from './host.ts'
import { answer } from './owner-acts.ts'
import type { Scene } from './scene.ts'

/** Steps after which a world that does not come to rest is stuck. */
const PATIENCE = 6_000

export async function conclude(scene: Scene): Promise<void> {
  const { world } = scene
  world.tell('-- from here on nothing fails any more')
  world.calm = true
  for (let steps = 0; !(await isAtRest(scene)); steps++) {
    if (steps < PATIENCE && world.breaches.length === 0) continue
    const states = scene.sessions.map((id) => `${id} ${scene.living(id).map(({ living }) => living?.status)}`)
    return void world.breach('LIVENESS', `${states.join(', ')}; ${world.labels().join('; ')}`)
  }
  await atRest(scene)
  await closeAll(scene)
  await reopenAll(scene)
}

/** A session at rest is opened and closed, and nothing is written. */
async function reopenAll(scene: Scene): Promise<void> {
  const { truth, world } = scene
  const [process, before] = [world.spawn('p'), new Map(scene.sessions.map((id) => [id, headOf(scene, id)]))]
  for (const id of scene.sessions) await scene.open(id, process, true)
  for (let steps = 0; steps < PATIENCE && world.waiting > 0; steps++) await world.stepPending()
  await closeAll(scene)
  for (const [id, head] of before) {
    const written = truth.sessions.get(id)?.log.slice(head) ?? []
    const what = written.map(({ type }) => type)
    world.must(what.length === 0, 'REST-WRITES', () => `${id} was opened at rest, and ${what.join(', ')} written`)
  }
}

const headOf = ({ truth }: Scene, id: string): number => truth.sessions.get(id)?.log.length ?? 0

/** Does the next thing there is to do; true once there is nothing. */
async function isAtRest(scene: Scene): Promise<boolean> {
  const { world } = scene
  if (world.waiting > 0) return isNot(world.stepPending())
  for (const session of [...scene.sessions]) {
    if (scene.truth.cutOff.has(session)) {
      await discard(scene, session)
      return false
    }
    const host = scene.living(session).find(({ robbed }) => !robbed)
    if (host?.living === undefined) {
      if (scene.isOpening(session)) continue
      await scene.open(session, scene.process(0), true)
      return false
    }
    const [asked] = host.living.approvals()
    if (asked === undefined) continue
    const agent = host.living
    await world.run(host.process, () => answer(scene, host, agent, asked))
    return false
  }
  checkTimers(scene)
  if (await nextTimer(scene)) return false
  return !(await cancelWhatHangs(scene)) && !(await openWhatIsStuck(scene))
}

/** Whoever was opening it waits for an answer that never comes. */
async function openWhatIsStuck(scene: Scene): Promise<boolean> {
  const stuck = scene.sessions.find((session) => scene.living(session).every(({ robbed }) => robbed))
  if (stuck === undefined) return false
  await scene.open(stuck, scene.process(0), true)
  return true
}

const isNot = async (step: Promise<void>): Promise<false> => {
  await step
  return false
}

/** Subscribers wait for ever; agents that run wait for something. */
async function cancelWhatHangs(scene: Scene): Promise<boolean> {
  for (const host of scene.hosts) {
    const agent = host.living
    if (agent === undefined || agent.actor.getSnapshot().value === 'idle') continue
    scene.world.tell(`${host.name} hangs, and is cancelled`)
    scene.world.count('cancelled at last')
    await scene.world.run(host.process, () => scene.expect(host.process, `last cancel of ${host.name}`, agent.cancel()))
    return true
  }
  return false
}

async function nextTimer({ world }: Scene): Promise<boolean> {
  if (world.clock.timers.length === 0) return false
  await world.stepTimer()
  return true
}

/** ms: chunks that wait for more of them, and an append that waits for the store. */
const NO_LEAK = [20, 30_000]

/** An agent at rest waits for nothing: what its turns had to wait for is over with them. */
function checkTimers({ world, hosts }: Scene): void {
  const busy = hosts.filter((host) => host.process.alive && isBusy(host))
  const left = world.clock.timers.filter(
    ({ owner, ms }) => !NO_LEAK.includes(ms) && !busy.some(({ process }) => process === owner),
  )
  world.must(left.length === 0, 'TIMER-AT-REST', () => left.map(({ ms }) => `${ms} ms`).join(', '))
}

function isBusy({ agent, state }: Host): boolean {
  if (agent === undefined) return state === 'opening'
  const isOver = agent.status === 'failed' || agent.status === 'closed'
  return !isOver && agent.actor.getSnapshot().value !== 'idle'
}

/** A fork that was cut off is deleted, as its error says. */
async function discard(scene: Scene, session: string): Promise<void> {
  scene.sessions.splice(scene.sessions.indexOf(session), 1)
  await scene.world.run(scene.client, () =>
    scene.expect(scene.client, `delete of ${session}`, scene.outside.delete(session)),
  )
}

/** Nothing is to be done: whatever was asked of a living agent has its answer, and no timer waits. */
async function atRest(scene: Scene): Promise<void> {
  const { world } = scene
  for (const host of scene.hosts) if (host.living !== undefined) host.foldCheck?.check()
  const open = scene.promised.find(
    ({ label, process, settled }) => process.alive && !settled && label.startsWith('accepted'),
  )
  world.must(open === undefined, 'PROMISE', () => `at rest, and still open: ${open?.label}`)
}

async function closeAll(scene: Scene): Promise<void> {
  const { world } = scene
  for (const host of scene.hosts) {
    const agent = host.agent
    if (agent === undefined || !host.process.alive || host.state === 'over') continue
    host.state = 'over'
    await world.run(host.process, () => scene.expect(host.process, `last close of ${host.name}`, agent.close()))
  }
  await world.run(scene.client, () => {
    for (const leaves of scene.subscriptions) leaves.abort()
  })
  for (let steps = 0; steps < PATIENCE && world.waiting > 0; steps++) await world.stepPending()
  const late = world.clock.timers.map(({ ms }) => `${ms} ms`)
  world.must(late.length === 0, 'TIMER-LEFT', () => `all is closed, and timers wait: ${late.join(', ')}`)
  const open = scene.promised.find(({ process, settled }) => process.alive && !settled)
  world.must(open === undefined, 'PROMISE', () => `all is closed, and still open: ${open?.label}`)
}
