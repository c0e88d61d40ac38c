/** A failing tape made shorter and plainer, as long as it fails in the same way: what is left is what it takes. */
import type { Bytes } from './tape.ts'

interface Search {
  best: Bytes
  /** How many plays are left. */
  left: number
  readonly fails: (bytes: Bytes) => Promise<boolean>
}

/** The plainest tape found in `plays` tries that still `fails`: fewer steps first, then plainer ones. */
export async function shrink(bytes: Bytes, fails: Search['fails'], plays = 600): Promise<Bytes> {
  const search: Search = { best: trimmed(bytes), left: plays, fails }
  for (let before = Number.POSITIVE_INFINITY; search.best.length < before && search.left > 0; ) {
    before = search.best.length
    await eachBlock(search, (best, from, to) => [...best.slice(0, from), ...best.slice(to)])
  }
  await eachBlock(search, (best, from, to) => best.map((step, i) => (i >= from && i < to ? [] : step)))
  await eachByte(search)
  return search.best
}

/** Zeros at the end of a step say nothing, and neither do empty steps at the end of a tape. */
function trimmed(bytes: Bytes): Bytes {
  const steps = bytes.map((step) => step.slice(0, step.findLastIndex((byte) => byte !== 0) + 1))
  return steps.slice(0, steps.findLastIndex((step) => step.length > 0) + 1)
}

async function accepts(search: Search, candidate: Bytes): Promise<boolean> {
  const tape = trimmed(candidate)
  if (search.left <= 0 || JSON.stringify(tape) === JSON.stringify(search.best)) return false
  search.left--
  if (!(await search.fails(tape))) return false
  search.best = tape
  return true
}

/** Blocks of steps, of half of them down to one, from the end: what came last mostly matters least. */
async function eachBlock(search: Search, change: (best: Bytes, from: number, to: number) => Bytes): Promise<void> {
  for (let size = Math.max(1, search.best.length >> 1); size >= 1 && search.left > 0; size >>= 1) {
    for (let to = search.best.length; to > 0 && search.left > 0; to -= size) {
      await accepts(search, change(search.best, Math.max(0, to - size), to))
      to = Math.min(to, search.best.length + size)
    }
  }
}

/** Each byte: none at all, or half of it. */
async function eachByte(search: Search): Promise<void> {
  for (let at = 0; at < search.best.length; at++) {
    for (let index = 0; index < (search.best[at]?.length ?? 0) && search.left > 0; index++) {
      const byte = search.best[at]?.[index] ?? 0
      if (byte === 0 || (await accepts(search, withByte(search.best, at, index, 0)))) continue
      await accepts(search, withByte(search.best, at, index, byte >> 1))
    }
  }
}

const withByte = (bytes: Bytes, at: number, index: number, byte: number): Bytes =>
  bytes.map((step, i) => (i === at ? step.map((old, j) => (j === index ? byte : old)) : step))
