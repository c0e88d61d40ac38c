/**
 * A quick look before a slow one. Most pieces of most texts hold no beginning of a secret, and two characters tell: so
 * the regular expression is asked once for all pairs, and then only for texts that have one of them.
 */

const ASCII = 128
const BACKSLASH = 0x5c

/**
 * Whether, from `from` on, a match of `leads` might begin in the text, which comes right after `before`. Such a match
 * must end with the text or be whole, and begin a word if it begins with a letter; and `leads` must be global, and look
 * behind no further than that.
 */
export function beginningsOf(leads: RegExp): (text: string, from: number, before?: string) => boolean {
  const begins = (text: string): boolean =>
    // Behind a letter for what follows one, behind nothing for what begins a word.
    ['', 'z'].some((before) => {
      leads.lastIndex = before.length
      return leads.exec(before + text)?.index === before.length
    })
  const chars = Array.from({ length: ASCII }, (_, code) => String.fromCharCode(code))
  const firsts = new Uint8Array(ASCII)
  const pairs = new Uint8Array(ASCII * ASCII)
  for (const [code, char] of chars.entries()) {
    if (!begins(char)) continue
    firsts[code] = 1
    for (const [next, second] of chars.entries()) if (begins(char + second)) pairs[code * ASCII + next] = 1
  }
  return (text, from, before = '') => {
    let previous = from > 0 ? text.charCodeAt(from - 1) : before.charCodeAt(before.length - 1)
    for (let at = from; at < text.length; at++) {
      const code = text.charCodeAt(at)
      const last = previous
      previous = code
      if (code >= ASCII || firsts[code] === 0) continue
      if (isAlphanumeric(code) && isAlphanumeric(last) && charBefore(text, at - 2, before) !== BACKSLASH) continue
      if (at + 1 === text.length) return true
      const next = text.charCodeAt(at + 1)
      if (next < ASCII && pairs[code * ASCII + next] === 1) return true
    }
    return false
  }
}

/** The character at `at` of `text`, or where that is below 0 of what comes before it. */
const charBefore = (text: string, at: number, before: string): number =>
  at >= 0 ? text.charCodeAt(at) : before.charCodeAt(before.length + at)

const isAlphanumeric = (code: number): boolean =>
  (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a) || (code >= 0x30 && code <= 0x39)
