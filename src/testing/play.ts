/**
 * Plays a path on a real agent: real store, real actors, a model and tools that do what the path says, a clock that
 * only the path moves. After each input everything observable is held to what the closed loop of the chart says.
 */
import type { AgentOptions } from '../agent.ts'
import type { Hooks } from '../services/hooks/contract.ts'
import type { AgentPath } from './path.ts'
import { createLane, type Lane, type LaneStore } from './play/lane.ts'
import type { PlayedPath } from './play/played.ts'
import { playInLane } from './play/player.ts'

export { createLane, type Lane, type LaneStore } from './play/lane.ts'
export { PathMismatch } from './play/mismatch.ts'
export type { PlayedPath } from './play/played.ts'

/** Everything has a default. */
export interface PlayOptions {
  /**
   * The path of a SQLite file, or how a store is opened: a crash closes it and opens it again. By default a new SQLite
   * file, which is removed afterwards.
   */
  readonly store?: LaneStore
  /** One's own: each runs inside the path's hook of that name, where that says to go on as usual. */
  readonly hooks?: Partial<Hooks>
  /** What else the agent is made with; what a path decides (model, tools, clock, limits, ...) is the path's. */
  readonly agent?: Partial<AgentOptions>
  /** Real ms to wait for what must happen; 5,000. */
  readonly patienceMs?: number
}

/**
 * Plays the path on an agent of its own, in a session of its own. A path whose tools or hooks are a user's may go
 * another way than was planned; the agent is held to the way it goes, to its end.
 * @throws PathMismatch at the first thing that is not as the chart says
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
export const playOn = (lane: Lane, path: AgentPath, options: Omit<PlayOptions, 'store'> = {}): Promise<PlayedPath> => {
  const { hooks = {}, agent = {}, patienceMs = 5_000 } = options
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

/** Plays all of them, many at a time. Rejects only for what is not the fault of one path. */
export async function playPaths(paths: Iterable<AgentPath>, options: PlayManyOptions): Promise<void> {
  const { lanes = 2, abreast = 24, onPlayed } = options
  const waiting = paths[Symbol.iterator]()
  const open = await Promise.all(Array.from({ length: lanes }, () => createLane()))
  const playOnes = async (lane: Lane): Promise<void> => {
    for (let next = waiting.next(); !next.done; next = waiting.next()) {
      const path = next.value
      onPlayed(path, await playOn(lane, path, options).catch((thrown: unknown) => ({ thrown })))
    }
  }
  try {
    await Promise.all(open.flatMap((lane) => Array.from({ length: abreast }, () => playOnes(lane))))
  } finally {
    for (const lane of open) await lane[Symbol.asyncDispose]()
  }
}
