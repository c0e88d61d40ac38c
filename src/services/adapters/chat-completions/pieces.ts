/**
 * Text that comes in pieces. They are joined as they come, so that a long answer in small deltas costs its own length
 * once: a string of three characters takes eight times their room.
 */

export interface Pieces {
  add(piece: string): void
  /** All so far. */
  text(): string
}

/** Characters that are kept loose. */
const SLAB = 65_536

/** Text without a piece yet. */
export function createPieces(): Pieces {
  let joined = ''
  let loose: string[] = []
  let length = 0
  const text = (): string => {
    // A string of slabs is not copied by this; who reads its characters copies them once.
    joined += loose.join('')
    loose = []
    length = 0
    return joined
  }
  return {
    add(piece) {
      loose.push(piece)
      length += piece.length
      if (length >= SLAB) text()
    },
    text,
  }
}
