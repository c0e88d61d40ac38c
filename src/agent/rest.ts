/**
 * Agents at rest, and what goes once they have rested for a while: what a turn leaves for the next one is worth its
 * memory only if that one comes soon. One timer looks at all of them, so that beginning and ending a turn costs nothing.
 */
// By name: these are real where a test has the global's timers in hand.
import { clearTimeout, setTimeout } from 'node:timers'

export interface Slimming {
  /** Drops what can be had again. Nobody may see a difference but the memory. */
  slim(): void
}

/** An agent is looked at once it has rested for this long, in real ms, and for less than twice as long. */
const REST_MS = 1_000

let lately = new Set<Slimming>()
let longer = new Set<Slimming>()
let timer: ReturnType<typeof setTimeout> | undefined

export function atRest(agent: Slimming): void {
  if (!longer.has(agent)) lately.add(agent)
  timer ??= setTimeout(look, REST_MS).unref()
}

export function atWork(agent: Slimming): void {
  lately.delete(agent)
  longer.delete(agent)
}

/** It is over, or sleeps. With the last of them the timer goes. */
export function gone(agent: Slimming): void {
  atWork(agent)
  if (lately.size > 0 || longer.size > 0) return
  clearTimeout(timer)
  timer = undefined
}

function look(): void {
  const rested = longer
  longer = lately
  lately = new Set()
  timer = longer.size === 0 ? undefined : setTimeout(look, REST_MS).unref()
  for (const agent of rested) agent.slim()
}
