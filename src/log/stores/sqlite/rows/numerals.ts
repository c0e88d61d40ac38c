/** Whole numbers as text, one after the other: small ones, such as lengths of deltas, take a character each. */
import { isCount } from '../../deltas.ts'
import { Damaged } from './checked.ts'

/** None of them is escaped in JSON. */
const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'

/** The lower half of the digits ends a number; one of the upper half says that more follow. */
const BASE = 32

const VALUES = new Int8Array(128).fill(-1)
for (let value = 0; value < DIGITS.length; value++) VALUES[DIGITS.charCodeAt(value)] = value

/** `n`, an integer from 0, the lowest digits first. */
export function numeral(n: number): string {
  let text = ''
  let rest = n
  for (; rest >= BASE; rest = Math.floor(rest / BASE)) text += DIGITS.charAt(BASE + (rest % BASE))
  return text + DIGITS.charAt(rest)
}

/** The numbers of a text that `numeral` made. @throws Damaged */
export function numbersOf(text: string): number[] {
  const numbers: number[] = []
  let [n, scale] = [0, 1]
  for (let at = 0; at < text.length; at++) {
    const value = VALUES[text.charCodeAt(at)] ?? -1
    n += (value % BASE) * scale
    if (value < 0 || !isCount(n)) throw new Damaged('a numeral')
    if (value < BASE) {
      numbers.push(n)
      n = 0
      scale = 1
    } else scale *= BASE
  }
  if (scale !== 1) throw new Damaged('a numeral that is cut off')
  return numbers
}
