/** Chance that repeats: everything a simulated world draws comes from one seed, its ids too. */

export interface Random {
  /** From 0 up to, not including, 1. */
  draw(): number
  chance(probability: number): boolean
  /** A whole number from 0 up to, not including, `limit`. */
  below(limit: number): number
  /** One of the items, of which there is at least one. */
  pick<T>(items: readonly T[]): T
  /** An id that no other call of this world gave. */
  id(prefix: string): string
}

export function createRandom(seed: number): Random {
  let state = seed >>> 0
  let ids = 0
  // Mulberry32: small, and good enough to shuffle a schedule.
  const draw = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (limit: number) => Math.floor(draw() * limit)
  return {
    draw,
    below,
    chance: (probability) => draw() < probability,
    pick(items) {
      const picked = items[below(items.length)]
      if (picked === undefined) throw new RangeError('Nothing to pick from')
      return picked
    },
    id: (prefix) => `${prefix}${++ids}`,
  }
}
