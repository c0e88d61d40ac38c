/** One schedule, from an empty store to rest: everything in it follows from the tape. */
import { memoryStore } from '../../../src/log/stores/memory.ts'
import { checkAll } from './checks.ts'
import { takeGlobalTimers } from './clock.ts'
import { conclude } from './conclude.ts'
import { Truth } from './mirror.ts'
import { actFromOutside } from './outside-acts.ts'
import { actAsOwner } from './owner-acts.ts'
import { takeProcessEvents } from './process-events.ts'
import { Scene } from './scene.ts'
import type { Tape } from './tape.ts'
import type { StoreFaults } from './wire.ts'
import { type Breach, World } from './world.ts'

export interface Played {
  /** The first promise that broke. */
  readonly breach: Breach | undefined
  /** The schedule in words, one event a line. */
  readonly story: readonly string[]
  readonly counts: ReadonlyMap<string, number>
  /** The bytes drawn while something could still fail. */
  readonly tape: readonly number[]
  /** The final logs, as text. */
  readonly logs: string
}

/** How faulty the store is, in one world. */
const FAULTS: readonly StoreFaults[] = [
  { fail: 0, lose: 0, hang: 0 },
  { fail: 0, lose: 0.05, hang: 0 },
  { fail: 0.01, lose: 0.02, hang: 0.005 },
]

/** Plays a tape. Never rejects for what it finds. */
export async function play(tape: Tape): Promise<Played> {
  const world = new World(tape)
  const truth = new Truth(world, memoryStore())
  const giveBackTimers = takeGlobalTimers(world.clock, () => world.running)
  const giveBackProcess = takeProcessEvents(world)
  try {
    await drive(new Scene(truth, tape.pick(FAULTS)))
  } catch (error) {
    world.breach('SIMULATOR', error instanceof Error ? `${error.stack}` : String(error))
  } finally {
    giveBackTimers()
    giveBackProcess()
  }
  const logs = JSON.stringify([...truth.sessions].map(([id, { log }]) => [id, log]))
  const { story, counts } = world
  return { breach: world.breaches[0], story, counts, tape: tape.drawn, logs }
}

async function drive(scene: Scene): Promise<void> {
  const { world } = scene
  const { tape } = world
  const sessions = tape.weighted([
    [4, 1],
    [2, 2],
    [1, 3],
    [1, 4],
  ] as const)
  for (let i = 0; i < sessions; i++) scene.sessions.push(`s${i + 1}`)
  for (const session of scene.sessions) await scene.open(session, scene.process(tape.below(2)), false)
  const length = 60 + tape.below(240)
  for (let steps = 0; steps < length && !tape.ended && world.breaches.length === 0; steps++) await step(scene)
  if (world.breaches.length === 0) await conclude(scene)
  if (world.breaches.length === 0) await checkAll(scene)
}

/** What happens next. */
async function step(scene: Scene): Promise<void> {
  const { world } = scene
  const kind = world.tape.weighted([
    [world.waiting > 0 ? 80 : 0, 'something that waits'],
    [world.clock.timers.length > 0 ? (world.waiting > 0 ? 4 : 30) : 0, 'a timer'],
    [11, 'a user'],
    [4, 'an outsider'],
    [1.5, 'an opening'],
    [0.8, 'a crash'],
  ] as const)
  switch (kind) {
    case 'something that waits':
      await world.stepPending()
      break
    case 'a timer':
      await world.stepTimer()
      break
    case 'a crash':
      await crash(scene)
      break
    case 'an outsider':
      await actFromOutside(scene, world.tape.pick(scene.sessions))
      break
    case 'an opening':
      await open(scene, world.tape.pick(scene.sessions))
      break
    case 'a user':
      await act(scene, world.tape.pick(scene.sessions))
      break
  }
  for (const host of scene.hosts) if (host.living !== undefined) host.checkFold()
}

async function act(scene: Scene, session: string): Promise<void> {
  const [host] = scene.living(session)
  if (host?.living !== undefined) await actAsOwner(scene, host, host.living)
  else await open(scene, session)
}

/** Where nobody has the session; or where somebody has, to be refused or to take it. */
async function open(scene: Scene, session: string): Promise<void> {
  const { tape } = scene.world
  if (scene.isOpening(session)) return scene.world.stepPending()
  const taken = scene.living(session).length > 0
  await scene.open(session, scene.process(tape.below(2)), taken ? tape.chance(0.6) : tape.chance(0.5))
}

async function crash(scene: Scene): Promise<void> {
  const { world } = scene
  const alive = [...scene.processes.filter(({ alive }) => alive), scene.client]
  const dying = world.tape.pick(alive)
  await world.kill(dying)
  if (dying === scene.client) scene.newClient()
}
