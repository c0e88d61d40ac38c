/**
 * Where a simulated world gets its choices from: a tape of bytes, drawn from a seed or given. 0 is always the plainest
 * choice, and a tape that is used up gives only zeros; so a shorter tape, or one with more zeros, is a simpler world.
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib'

export interface Tape {
  /** From 0 up to, not including, 1. */
  draw(): number
  /** False for the plainest choice. */
  chance(probability: number): boolean
  /** A whole number from 0 up to, not including, `limit`, which is 256 at most. */
  below(limit: number): number
  /** One of the items, of which there is at least one; the first is the plainest. */
  pick<T>(items: readonly T[]): T
  /** One of the choices, as often as its weight says; the first with a weight is the plainest. */
  weighted<T>(choices: readonly (readonly [weight: number, choice: T])[]): T
  /** What is drawn from here on belongs to the next step: a tape without some step leaves the choices of others as they are. */
  nextStep(): void
  /** From here on every choice is the plainest, and none is kept. */
  stop(): void
  /** No step is left on it. */
  readonly ended: boolean
  /** What was drawn so far, a list of bytes a step. */
  readonly drawn: Bytes
}

/** The choices of a schedule: those made before its first step, then those of each. */
export type Bytes = readonly (readonly number[])[]

/** A tape without end, the same for the same seed (mulberry32). */
export function seededTape(seed: number): Tape {
  let state = (seed * 7919) >>> 0
  return tapeFrom(() => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) >>> 24
  })
}

/** The bytes given, then zeros. */
export const givenTape = (bytes: Bytes): Tape => tapeFrom((step, index) => bytes[step]?.[index], bytes.length)

function tapeFrom(byteAt: (step: number, index: number) => number | undefined, steps = Number.POSITIVE_INFINITY): Tape {
  let step: number[] = []
  const drawn = [step]
  let stopped = false
  const draw = (): number => {
    if (stopped) return 0
    const byte = byteAt(drawn.length - 1, step.length) ?? 0
    step.push(byte)
    return byte / 256
  }
  const weighted: Tape['weighted'] = (choices) => {
    let left = draw() * choices.reduce((sum, [weight]) => sum + weight, 0)
    for (const [weight, choice] of choices) {
      left -= weight
      if (left < 0) return choice
    }
    throw new RangeError('Nothing to choose from')
  }
  return {
    draw,
    weighted,
    chance: (probability) => draw() >= 1 - probability,
    below: (limit) => Math.floor(draw() * limit),
    pick: (items) => weighted(items.map((item) => [1, item] as const)),
    nextStep() {
      step = []
      drawn.push(step)
    },
    stop() {
      stopped = true
    },
    get ended() {
      return drawn.length >= steps
    },
    drawn,
  }
}

/** A tape as a word to paste: each step's length, then its bytes. */
export function encodeTape(bytes: Bytes): string {
  const flat = bytes.flatMap((step) => [step.length >> 8, step.length & 255, ...step])
  return deflateRawSync(Uint8Array.from(flat), { level: 9 }).toString('base64url')
}

/** @throws for what `encodeTape` did not make */
export function decodeTape(word: string): Bytes {
  const flat = [...inflateRawSync(Buffer.from(word, 'base64url'))]
  const steps: number[][] = []
  while (flat.length > 0) {
    const [high = 0, low = 0] = flat.splice(0, 2)
    steps.push(flat.splice(0, high * 256 + low))
  }
  return steps
}
