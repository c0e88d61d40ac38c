/** A chunk from outside, made our own: read once, so that what is masked, counted and logged is one and the same. */
import { InvalidEvent } from '../../log/errors.ts'
import { type Json, toJson } from '../../log/json.ts'
import type { StreamChunk } from '../../log/messages.ts'
import { streamChunk } from '../../log/shapes.ts'

/**
 * A copy of the chunk, of whatever an adapter or a hook gave for one.
 * @throws NotJson, InvalidEvent for what is none
 */
export function ownChunk(given: StreamChunk): StreamChunk {
  const delta = plainDelta(given)
  if (delta !== undefined) return delta
  const copy = toJson(given, PLACE)
  const wrong = streamChunk(copy)
  if (wrong !== undefined) throw new InvalidEvent(`${PLACE}${wrong}`)
  return copy as Json & StreamChunk
}

const PLACE = 'assistant/chunk: data.chunk'

/** Almost all chunks are one of these, with nothing else to them; what is not exactly that goes the long way. */
function plainDelta(given: StreamChunk): StreamChunk | undefined {
  if (typeof given !== 'object' || given === null) return undefined
  const { type } = given
  if (type !== 'text-delta' && type !== 'reasoning-delta') return undefined
  const { index, text } = given
  // Negative zero would be read back as zero: what refuses it has the word.
  if (typeof text !== 'string' || !Number.isSafeInteger(index) || index < 0 || Object.is(index, -0)) return undefined
  let keys = 0
  for (const _ in given) keys += 1
  return keys === 3 ? { type, index, text } : undefined
}
