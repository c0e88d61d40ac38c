/**
 * Plays a path on a real agent: real store, real actors, a model and tools that do what the path says, a clock that
 * only the path moves. After each input everything observable is held to what the closed loop of the chart says.
 */
import type { AgentOptions } from '../agent.ts'
import { InvalidOption } from '../services/errors.ts'
import type { Hooks } from '../services/hooks/contract.ts'
import type { AgentPath } from './path.ts'
import { checkCount } from './path-options.ts'
import { createLane, type Lane, type LaneStore } from './play/lane.ts'
import type { PlayedPath } from './play/played.ts'
import { playInLane } from './play/player.ts'

export { createLane, type Lane, type LaneStore } from './play/lane.ts'
export { PathMismatch } from './play/mismatch.ts'
export type { PlayedPath } from './play/played.ts'

const OWN = [
  'system',
  'context',
  'variables',
  'hooks',
  'plugins',
  'maxTokens',
  'reasoningEffort',
  'secrets',
  'fallbackDir',
  'storeTimeoutMs',
  'inspect',
] as const satisfies readonly (keyof AgentOptions)[]

/** The options of an agent that no path decides. */
export type OwnOptions = Partial<Pick<AgentOptions, (typeof OWN)[number]>>

/** Everything has a default. */
export interface PlayOptions {
  /**
   * The path of a SQLite file, or how a store is opened: a crash closes it and opens it again. By default a new SQLite
   * file, which is removed afterwards.
   */
  readonly store?: LaneStore
  /**
   * One's own: each runs inside the path's hook of that name, where that says to go on as usual. It may decide otherwise,
   * and may throw; an answer that is none is a mismatch.
   */
  readonly hooks?: Partial<Hooks>
  /** What else the agent is made with. The rest (model, tools, clock, limits, ...) is the path's to decide. */
  readonly agent?: OwnOptions
  /** Real ms to wait for what must happen; 5,000. */
  readonly patienceMs?: number
}

/**
 * Plays the path on an agent of its own, in a session of its own. A path whose tools or hooks are a user's may go
 * another way than was planned; the agent is held to the way it goes, to its end.
 * @throws PathMismatch at the first thing that is not as the chart says; InvalidOption
 */
export async function playPath(path: AgentPath, options: PlayOptions = {}): Promise<PlayedPath> {
  const lane = await createLane(options.store)
  try {
    return await playOn(lane, path, options)
  } finally {
    await lane[Symbol.asyncDispose]()
  }
}

/** As `playPath`, on a lane that many paths share, one after the other. */
export async function playOn(
  lane: Lane,
  path: AgentPath,
  options: Omit<PlayOptions, 'store'> = {},
): Promise<PlayedPath> {
  const { hooks = {}, agent = {}, patienceMs = 5_000 } = options
  checkCount('patienceMs', patienceMs, 1)
  const own: readonly string[] = OWN
  const decided = Object.keys(agent).find((name) => !own.includes(name))
  if (decided !== undefined) {
    throw new InvalidOption(`agent.${decided}`, `is for the path to decide; one's own are ${own.join(', ')}`)
  }
  return playInLane(lane, path, { hooks, agent, patienceMs })
}

export interface PlayManyOptions extends Omit<PlayOptions, 'store'> {
  /** Stores, each in a file of its own; 2. */
  readonly lanes?: number
  /** Paths at a time in each store; 24. Most of a path's time is the disk's, and a crash is shared by all of them. */
  readonly abreast?: number
  /** Told of each path when it is through: what came of it, or what it threw. */
  onPlayed(path: AgentPath, outcome: PlayedPath | { readonly thrown: unknown }): void
}

/**
 * Plays all of them, many at a time. What one path ran into is told to `onPlayed`.
 * @throws InvalidOption; what `onPlayed` throws, once nothing is played any more; what opening a store throws
 */
export async function playPaths(paths: Iterable<AgentPath>, options: PlayManyOptions): Promise<void> {
  const { lanes = 2, abreast = 24, onPlayed } = options
  checkCount('lanes', lanes, 1)
  checkCount('abreast', abreast, 1)
  const waiting = paths[Symbol.iterator]()
  let broken = false
  const playOnes = async (lane: Lane): Promise<void> => {
    for (let next = waiting.next(); !next.done && !broken; next = waiting.next()) {
      const path = next.value
      const outcome = await playOn(lane, path, options).catch((thrown: unknown) => ({ thrown }))
      try {
        if (!broken) onPlayed(path, outcome)
      } catch (thrown) {
        broken = true
        throw thrown
      }
    }
  }
  const playLane = async (): Promise<void> => {
    const lane = await createLane()
    try {
      // A lane is closed only when nobody plays on it any more, whatever one of them ran into.
      throwFirst(await Promise.allSettled(Array.from({ length: abreast }, () => playOnes(lane))))
    } finally {
      await lane[Symbol.asyncDispose]()
    }
  }
  throwFirst(await Promise.allSettled(Array.from({ length: lanes }, playLane)))
}

function throwFirst(results: readonly PromiseSettledResult<void>[]): void {
  for (const result of results) if (result.status === 'rejected') throw result.reason
}
