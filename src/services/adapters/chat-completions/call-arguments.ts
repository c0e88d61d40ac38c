/**
 * A call's arguments as they come in pieces. Whether they are whole is followed character by character: parsing all of
 * them again for each piece would take time that grows with the square of their length.
 */
import { createPieces, type Pieces } from './pieces.ts'

export interface CallArguments extends Pieces {
  /** True once the object or list that they began with has closed. */
  readonly closed: boolean
}

/** Arguments without a piece yet. */
export function createCallArguments(): CallArguments {
  const pieces = createPieces()
  let depth = 0
  let quoted = false
  let escaped = false
  let closed = false
  const follow = (code: number): void => {
    if (escaped) escaped = false
    else if (quoted && code === BACKSLASH) escaped = true
    else if (code === QUOTE) quoted = !quoted
    else if (quoted) return
    else if (code === LIST || code === OBJECT) depth++
    else if ((code === LIST_END || code === OBJECT_END) && --depth === 0) closed = true
  }
  return {
    add(piece) {
      pieces.add(piece)
      for (let at = 0; at < piece.length && !closed; at++) follow(piece.charCodeAt(at))
    },
    text: pieces.text,
    get closed() {
      return closed
    },
  }
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const LIST = 0x5b
const LIST_END = 0x5d
const OBJECT = 0x7b
const OBJECT_END = 0x7d
