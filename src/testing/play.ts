/**
 * Plays a path on a real agent: real store, real actors, a model and tools that do what the path says, a clock that
 * only the path moves. After each input everything observable is held to what the closed loop of the chart says.
 */
import type { AgentOptions } from '../agent.ts'
import type { Hooks } from '../services/hooks/contract.ts'
import type { AgentPath } from './path.ts'
import { createLane, type Lane, type LaneStore } from './play/lane.ts'
import { type PlayedPath, playInLane } from './play/player.ts'

export { createLane, type Lane, type LaneStore } from './play/lane.ts'
export { PathMismatch } from './play/mismatch.ts'
export type { PlayedPath } from './play/player.ts'

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
