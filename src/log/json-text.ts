/**
 * Looking at JSON text without parsing it, for what parsing loses: the digits of a number. Positions are indexes into
 * the text; a text that ends too early gives a position at its end, never an error.
 */

/** The number literals of valid JSON, in order, as they are written. Those inside strings are text. */
export function numberLiterals(json: string): string[] {
  const literal = /[-\d][-+\d.eE]*/y
  const found: string[] = []
  for (let at = 0; at < json.length; ) {
    if (json.charCodeAt(at) === QUOTE) {
      at = endOfString(json, at)
      continue
    }
    // The text is valid, so a digit or a minus outside a string opens a number.
    literal.lastIndex = at
    const number = literal.exec(json)?.[0]
    if (number !== undefined) found.push(number)
    at += number?.length ?? 1
  }
  return found
}

/** Where the string whose quote stands at `start` is over: behind its closing quote. */
export function endOfString(json: string, start: number): number {
  let at = start + 1
  while (at < json.length && json.charCodeAt(at) !== QUOTE) at += json.charCodeAt(at) === BACKSLASH ? 2 : 1
  return Math.min(at + 1, json.length)
}

/** Where the value that begins at `start` (not at a blank) is over. */
export function endOfValue(json: string, start: number): number {
  let open = 0
  for (let at = start; at < json.length; ) {
    const character = json.charAt(at)
    if (character === '"') at = endOfString(json, at)
    else if (open === 0 && at > start && /[\s,\]}]/.test(character)) return at
    else {
      open += OPENING.includes(character) ? 1 : CLOSING.includes(character) ? -1 : 0
      at++
    }
    if (open === 0 && (character === '"' || CLOSING.includes(character))) return at
  }
  return json.length
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPENING = '[{'
const CLOSING = ']}'
