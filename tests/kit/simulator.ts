/**
 * Random schedules over the real chart: runs, crashes between and within batches, suspends and forks, each carried on
 * to rest and audited. Everything follows from one seed.
 */

import type { Rule } from '../../src/log/invariants/rules.ts'
import { checkInvariants } from '../../src/log/invariants.ts'
import { pending } from '../../src/machines/evolve.ts'
import type { Audit } from './audit/frame.ts'
import { audit } from './audit.ts'
import { posted } from './simulator/commands.ts'
import { forkOf } from './simulator/fork.ts'
import type { Past, WorldOptions } from './simulator/past.ts'
import { createRandom, type Random } from './simulator/random.ts'
import { World } from './simulator/world.ts'

export interface Tally {
  schedules: number
  crashes: number
  suspends: number
  forks: number
  events: number
  /** How often fold and live were compared: once a batch. */
  checks: number
  /** How turns ended, and how often. */
  readonly endings: Map<string, number>
}

export const emptyTally = (): Tally => ({
  schedules: 0,
  crashes: 0,
  suspends: 0,
  forks: 0,
  events: 0,
  checks: 0,
  endings: new Map(),
})

export interface Thoroughness {
  /** How many points of each run it crashes at, and forks at; 'all' takes each of them. */
  readonly crashes: number | 'all'
  readonly forks: number | 'all'
  /** Sees every log that was carried on to rest. */
  readonly onLog?: (past: Past) => void
}

/** Plays what the seed says, and counts it. @throws the first thing that must not be. */
export function simulate(seed: number, tally: Tally, thoroughness: Thoroughness): void {
  const random = createRandom(seed * 7919)
  const simulation = { random, tally, thoroughness }
  const past = run(simulation)
  for (const cut of some(random, past.batches, thoroughness.crashes)) crashAt(simulation, before(past, cut))
  const lengths = past.log.map((_, index) => index + 1)
  for (const length of some(random, lengths, thoroughness.forks)) forkAt(simulation, forkOf(past, length))
}

interface Simulation {
  readonly random: Random
  readonly tally: Tally
  readonly thoroughness: Thoroughness
}

const some = <T>(random: Random, items: readonly T[], count: number | 'all'): readonly T[] =>
  count === 'all' ? items : Array.from({ length: items.length > 0 ? count : 0 }, () => random.pick(items))

const anyOptions = (random: Random): WorldOptions => ({
  maxParallelToolCalls: random.pick([1, 2, 10]),
  maxSteps: 3,
  maxResumes: random.pick([1, 3]),
  recovery: random.chance(0.7) ? 'continue' : 'interrupt',
  atOnce: random.chance(0.2) ? 0.6 : 0.15,
  never: 0.03,
  throws: 0.02,
  observers: 0.05,
  approvals: true,
})

/** A fresh agent that nobody interrupts. What it had done when it was told to come to rest is there to be cut. */
function run({ random, tally, thoroughness }: Simulation): Past {
  const world = new World({ log: [], batches: [], deeds: [] }, anyOptions(random), random)
  world.drive(60)
  const { past } = world
  assertSound(past, false)
  tally.schedules++
  conclude(world, tally, thoroughness)
  return past
}

function open(past: Past, random: Random): World {
  const world = new World(past, anyOptions(random), random)
  world.open(posted(random, world.snapshot().context))
  return world
}

/** Once, and often a second and a third time, the process dies or is closed; then the log is carried on to rest. */
function crashAt({ random, tally, thoroughness }: Simulation, past: Past): void {
  let world = reopen(past, random, tally)
  for (let again = 0.6; random.chance(again); again -= 0.2) {
    world = reopen(random.chance(0.3) ? suspend(world, tally) : kill(world, random, tally), random, tally)
  }
  conclude(world, tally, thoroughness)
}

function reopen(past: Past, random: Random, tally: Tally): World {
  const world = open(past, random)
  tally.crashes++
  if (random.chance(0.5)) world.drive(8, 0.1)
  return world
}

function forkAt({ random, tally, thoroughness }: Simulation, child: Past): void {
  let world = new World(child, anyOptions(random), random)
  if (pending(world.snapshot().context)) throw new Error('A fork inherits no queued message')
  world.open(posted(random, world.snapshot().context))
  tally.forks++
  if (random.chance(0.4)) {
    world.drive(6, 0.1)
    if (random.chance(0.5)) world = open(kill(world, random, tally), random)
  }
  conclude(world, tally, thoroughness)
}

/** The log as it was `length` events long, and what had been done by then. */
const before = ({ log, batches, deeds }: Past, length: number): Past => ({
  log: log.slice(0, length),
  batches: batches.filter((batch) => batch <= length),
  deeds: deeds.filter(({ at }) => at <= length),
})

/** Dies at any instant. A batch that is not whole is lost, but none that came before something done. */
function kill(world: World, random: Random, tally: Tally): Past {
  const { past } = world
  const durable = Math.max(world.found, ...past.deeds.map(({ at }) => at))
  const written = durable + random.below(past.log.length - durable + 1)
  world.crash()
  const whole = past.batches.filter((batch) => batch <= written).at(-1) ?? 0
  return leave(world, before(past, Math.max(durable, whole)), tally)
}

function suspend(world: World, tally: Tally): Past {
  tally.suspends++
  return leave(world, world.suspend(), tally)
}

function leave(world: World, past: Past, tally: Tally): Past {
  assertSound(past, false)
  count(world, tally)
  return past
}

function conclude(world: World, tally: Tally, { onLog }: Thoroughness): void {
  world.finish()
  const { past } = world
  for (const [kind, ends] of assertSound(past, true).endings) {
    tally.endings.set(kind, (tally.endings.get(kind) ?? 0) + ends)
  }
  count(world, tally)
  onLog?.(past)
}

function count(world: World, tally: Tally): void {
  tally.checks += world.checks
  tally.events += world.log.length - world.found
}

/** What the simulated model does not care for: its chunks are few and cite no request, its bounds are made up. */
const UNMODELLED: ReadonlySet<Rule> = new Set<Rule>([
  'REQUEST-HEADER',
  'REQUEST-DIGEST',
  'STREAM-FINISH',
  'ANSWER-SAID',
  'LIMIT-SPENT',
  'REPEATED-CALL',
])

/** Holds a log against what must be true of any. @throws the first violation, with what led there. */
function assertSound({ log, batches, deeds }: Past, done: boolean): Audit {
  const audited = audit(log, { done, batches, bodies: deeds.filter(({ kind }) => kind === 'body') })
  const broken = checkInvariants(log).filter(({ rule }) => !UNMODELLED.has(rule))
  const [first] = [...audited.violations, ...broken]
  if (first === undefined) return audited
  const story = log.slice(Math.max(0, first.seq - 14), first.seq + 2).map((event) => JSON.stringify(event))
  throw new Error(`seq ${first.seq}: ${first.message}\n${story.join('\n')}`)
}
