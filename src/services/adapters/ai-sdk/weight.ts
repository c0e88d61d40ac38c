/** How much of memory a part takes, about: its characters and its values, whatever their shape. */
import { tooLarge } from '../chat-completions/sse.ts'

/**
 * The weight of what a provider gave, in characters. A cycle weighs once; what cannot be read weighs nothing, and is not
 * kept either.
 * @throws LlmError RESPONSE_TOO_LARGE for more than `most`.
 */
export function weightOf(given: unknown, most: number): number {
  const rest: unknown[] = [given]
  const seen = new Set<object>()
  let weight = 0
  while (rest.length > 0) {
    const value = rest.pop()
    weight += 1
    if (typeof value === 'string' || value instanceof Uint8Array) weight += value.length
    else if (typeof value === 'object' && value !== null && !seen.has(value)) {
      seen.add(value)
      for (const [key, item] of entriesOf(value)) {
        weight += key.length
        rest.push(item)
      }
    }
    if (weight > most) throw tooLarge(most)
  }
  return weight
}

function entriesOf(value: object): readonly (readonly [string, unknown])[] {
  try {
    return Object.entries(value)
  } catch {
    // An accessor or a proxy of the provider's own threw: nothing of ours runs in here.
    return []
  }
}
