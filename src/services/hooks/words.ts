/** What a hook says in words, for the log: text of a bounded length. */

const MAX_CHARACTERS = 16_000

/** The value as text, its end cut off where it is too long to keep. Throws what the value's own conversion throws. */
export function inWords(value: unknown): string {
  const text = String(value)
  return text.length > MAX_CHARACTERS ? `${text.slice(0, MAX_CHARACTERS)}…` : text
}
