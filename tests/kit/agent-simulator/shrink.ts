/** A failing tape made shorter and plainer, as long as it fails in the same way: what is left is what it takes. */

type Bytes = readonly number[]

interface Search {
  best: Bytes
  /** How many plays are left. */
  left: number
  readonly fails: (bytes: Bytes) => Promise<boolean>
}

/** The plainest tape found in `plays` tries that still `fails`. */
export async function shrink(bytes: Bytes, fails: Search['fails'], plays = 500): Promise<Bytes> {
  const search: Search = { best: trimmed(bytes), left: plays, fails }
  await cutEnd(search)
  for (let before = -1; before !== search.best.length && search.left > 0; ) {
    before = search.best.length
    await eachBlock(search, (tape, from, to) => [...tape.slice(0, from), ...tape.slice(to)])
    await eachBlock(search, (tape, from, to) => tape.map((byte, i) => (i >= from && i < to ? 0 : byte)))
  }
  await halve(search)
  return search.best
}

/** Zeros at the end say nothing: a tape that is used up gives them anyway. */
function trimmed(bytes: Bytes): Bytes {
  let length = bytes.length
  while (length > 0 && bytes[length - 1] === 0) length--
  return bytes.slice(0, length)
}

async function accepts(search: Search, candidate: Bytes): Promise<boolean> {
  const tape = trimmed(candidate)
  const same = tape.length === search.best.length && tape.every((byte, i) => byte === search.best[i])
  if (same || search.left <= 0) return false
  search.left--
  if (!(await search.fails(tape))) return false
  search.best = tape
  return true
}

/** The shortest beginning that fails, by halves. */
async function cutEnd(search: Search): Promise<void> {
  for (let length = search.best.length >> 1; length > 0; length >>= 1) {
    while (search.best.length > length && (await accepts(search, search.best.slice(0, search.best.length - length)))) {}
  }
}

async function eachBlock(search: Search, change: (tape: Bytes, from: number, to: number) => Bytes): Promise<void> {
  for (let size = Math.max(1, search.best.length >> 1); size >= 1 && search.left > 0; size >>= 1) {
    for (let from = 0; from < search.best.length && search.left > 0; ) {
      if (!(await accepts(search, change(search.best, from, from + size)))) from += size
      else if (search.best[from] === 0) from += size
    }
  }
}

async function halve(search: Search): Promise<void> {
  for (let at = 0; at < search.best.length; at++) {
    const half = (tape: Bytes): Bytes => tape.map((byte, i) => (i === at ? byte >> 1 : byte))
    while ((search.best[at] ?? 0) > 0 && (await accepts(search, half(search.best)))) {}
  }
}
