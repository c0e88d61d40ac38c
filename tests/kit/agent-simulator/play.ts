/** One schedule, from an empty store to rest: everything in it follows from the tape. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryStore } from '../../../src/log/stores/memory.ts'
import { type CheckpointStore, checkpointStore } from '../checkpoints.ts'
import { checkAll } from './checks.ts'
import { takeGlobalTimers } from './clock.ts'
import { conclude } from './conclude.ts'
import { Truth } from './mirror.ts'
import { actFromOutside } from './outside-acts.ts'
import { actAsOwner } from './owner-acts.ts'
import { takeProcessEvents } from './process-events.ts'
import { Scene } from './scene.ts'
import type { Bytes, Tape } from './tape.ts'
import type { StoreFaults } from './wire.ts'
import { type Breach, type SimProcess, World } from './world.ts'

export interface Played {
  /** The first promise that broke. */
  readonly breach: Breach | undefined
  /** The schedule in words, one event a line. */
  readonly story: readonly string[]
  readonly counts: ReadonlyMap<string, number>
  /** The bytes drawn while something could still fail. */
  readonly tape: Bytes
  /** The final logs, as text. */
  readonly logs: string
}

/** How faulty the store is, in one world. */
const FAULTS: readonly StoreFaults[] = [
  { fail: 0, lose: 0, hang: 0 },
  { fail: 0, lose: 0.05, hang: 0 },
  { fail: 0.01, lose: 0.02, hang: 0.005 },
]

/**
 * When agents hibernate, after each step: never; at rest; or while they wait for something as well. 'pretended' is 'at rest'
 * without doing it, so that the event loop turns as often: what takes several turns has come as far.
 */
export type Sleeps = 'never' | 'pretended' | 'at rest' | 'always'

/** Plays a tape. Never rejects for what it finds. */
export async function play(tape: Tape, sleeps: Sleeps = 'never'): Promise<Played> {
  const world = new World(tape)
  const store = checkpointStore(memoryStore(), 1)
  const truth = new Truth(world, store)
  const giveBackTimers = takeGlobalTimers(world.clock, () => world.running)
  const giveBackProcess = takeProcessEvents(world)
  const unsaved = mkdtempSync(join(tmpdir(), 'pawl-simulated-'))
  try {
    await drive(new Scene(truth, tape.pick(FAULTS), tape.chance(0.2) ? unsaved : undefined), sleeps, store.kept)
  } catch (error) {
    world.breach('SIMULATOR', error instanceof Error ? `${error.stack}` : String(error))
  } finally {
    giveBackTimers()
    giveBackProcess()
    rmSync(unsaved, { recursive: true, force: true })
  }
  const logs = JSON.stringify([...truth.sessions].map(([id, { log }]) => [id, log]))
  const { story, counts } = world
  return { breach: world.breaches[0], story, counts, tape: tape.drawn, logs }
}

async function drive(scene: Scene, sleeps: Sleeps, kept: CheckpointStore['kept']): Promise<void> {
  const { world } = scene
  const { tape } = world
  const weather: Weather = { crashes: tape.pick([0.4, 1, 3]), noise: tape.pick([1, 0.5, 0.25]) }
  const sessions = tape.weighted([
    [4, 1],
    [2, 2],
    [1, 3],
    [1, 4],
  ] as const)
  for (let i = 0; i < sessions; i++) scene.sessions.push(`s${i + 1}`)
  for (const session of scene.sessions) await scene.open(session, scene.process(tape.below(2)), false)
  const length = 60 + tape.below(240)
  for (let steps = 0; steps < length && !tape.ended && world.breaches.length === 0; steps++) {
    tape.nextStep()
    await step(scene, weather)
    await sleep(scene, sleeps, kept)
  }
  tape.stop()
  if (world.breaches.length === 0) await conclude(scene)
  if (world.breaches.length === 0) await checkAll(scene)
}

/** How often processes die, and how much people do while agents work. */
interface Weather {
  readonly crashes: number
  readonly noise: number
}

/** What happens next. */
async function step(scene: Scene, { crashes, noise }: Weather): Promise<void> {
  const { world } = scene
  const risk = working(scene).length > 0 ? 15 * crashes : crashes
  const kind = world.tape.weighted([
    [world.waiting > 0 ? 80 : 0, 'something that waits'],
    [timerWeight(world), 'a timer'],
    [11 * noise, 'a user'],
    [4 * noise, 'an outsider'],
    [1.5 * noise, 'an opening'],
    [risk, 'a crash'],
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
  for (const host of scene.hosts) if (host.living !== undefined) host.foldCheck?.check()
}

/** ms that chunks wait for more of them. */
const WINDOW_MS = 20

/** Whoever may hibernates, and takes no step of the schedule for it. */
async function sleep({ world, hosts }: Scene, sleeps: Sleeps, kept: CheckpointStore['kept']): Promise<void> {
  if (sleeps === 'never') return
  for (const host of hosts) {
    const { process, living: agent } = host
    const may = agent?.status === 'idle' || (sleeps === 'always' && agent?.status === 'waiting')
    // Held to one that stays awake, it may not sleep where that one would write, or learn that it was robbed, at another
    // step: while something is under way, before it has recorded anything, and where closing keeps a checkpoint.
    const chunks = world.clock.timers.some(({ owner, ms }) => owner === process && ms === WINDOW_MS)
    const waits = chunks || world.labels().some((label) => label.startsWith(`${process.name}: `))
    const head = agent?.session.head ?? 0
    const comparable = !waits && head > host.opened && kept.get(host.sessionId)?.seq === head
    if (agent !== undefined && may && (sleeps === 'always' || comparable))
      await world.run(process, () => void (sleeps === 'pretended' || agent.hibernate()))
  }
}

/** While something waits, little time passes: a store that answers in seconds is not one that is too late. */
function timerWeight({ waiting, clock: { timers, now } }: World): number {
  const [next] = timers
  if (next === undefined) return 0
  if (waiting === 0) return 40
  return next.at - now <= 1_000 ? 4 : 0.4
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

/** Processes in which a tool's body runs: whatever comes of that is the point of a crash. */
function working(scene: Scene): readonly SimProcess[] {
  const { truth, sessions } = scene
  const busy = (id: string): boolean =>
    truth.sessions
      .get(id)
      ?.snapshot()
      .context.calls.some(({ status }) => status === 'dispatched') ?? false
  return sessions.filter(busy).flatMap((id) => scene.living(id).map(({ process }) => process))
}

async function crash(scene: Scene): Promise<void> {
  const { world } = scene
  const alive = [...working(scene), ...scene.processes.filter(({ alive }) => alive), scene.client]
  const dying = world.tape.pick(alive)
  const owned = scene.hosts.filter((host) => host.process === dying && host.living !== undefined)
  const [session] = owned.map(({ sessionId }) => sessionId)
  // A command that is posted, and whose outcome nobody will have recorded when the process dies.
  if (session !== undefined && world.tape.chance(0.15)) await postAndWait(scene, session)
  if (owned.some(({ sessionId }) => hasUntaken(scene, sessionId)))
    world.count('crashes before a command has its outcome')
  await world.kill(dying)
  if (dying === scene.client) scene.newClient()
  else if (session !== undefined && world.tape.chance(0.2)) await crashAgain(scene, session)
}

const hasUntaken = ({ letters, truth }: Scene, sessionId: string): boolean =>
  letters.some(({ session, sent, command }) => session === sessionId && sent && !truth.taken.has(command.id))

async function postAndWait(scene: Scene, session: string): Promise<void> {
  await actFromOutside(scene, session)
  for (let steps = 2 + scene.world.tape.below(3); steps > 0; steps--) await scene.world.stepPending()
}

/** Whoever carries the session on dies too, before or while it does. */
async function crashAgain(scene: Scene, session: string): Promise<void> {
  const { world } = scene
  if (scene.isOpening(session) || scene.living(session).length > 0) return
  const { process } = await scene.open(session, scene.process(world.tape.below(2)), true)
  for (let steps = world.tape.below(8); steps > 0; steps--) await world.stepPending()
  if (!process.alive) return
  world.count('crashes twice in a row')
  await world.kill(process)
}
