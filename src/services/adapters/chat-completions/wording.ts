/** What providers' words mean where their status alone does not say. */
import { isOwnCode } from '../../llm/own-codes.ts'

/**
 * A provider's own word as a code: in capitals, at most 64, nothing but letters, digits and underscores. Where that is
 * a code of ours it is told apart: `aborted` is PROVIDER_ABORTED, for nobody here aborted anything.
 */
export function codeOfWord(word: string): string {
  const code = capitals(word)
  return isOwnCode(code) ? `PROVIDER_${code}` : code
}

/** A word as it would stand in a code. */
export const capitals = (word: string): string =>
  [...word.toUpperCase().replace(/[^\p{L}\p{N}_]+/gu, '_')].slice(0, 64).join('')

/** True for words that say the request does not fit into the model's context. */
export const saysOverflow = (words: string): boolean => OVERFLOW.test(words)

/** True for words that say the account's money or allowance is spent; waiting a minute does not help. */
export const saysQuota = (words: string): boolean => QUOTA.test(words)

const OVERFLOW = new RegExp(
  [
    /context[ _-]?(?:length|window|size|limit)/,
    /maximum context/,
    /(?:prompt|input|request|conversation|messages?)\b.{0,40}\btoo (?:long|large|many tokens)/,
    /too many (?:input |prompt )?tokens/,
    /exceeds? (?:the )?(?:model'?s )?(?:maximum )?(?:input|prompt|context)/,
    /reduce the length of the (?:messages|prompt|input)/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'i',
)

const QUOTA = new RegExp(
  [
    /insufficient[ _-]?(?:quota|balance|funds?|credits?)/,
    /out of (?:credits?|quota|funds)/,
    /exceeded (?:your|the) (?:current |monthly )?(?:quota|budget|spending)/,
    /quota[ _-]?(?:exceeded|exhausted)/,
    /billing[ _-]?(?:hard[ _-]?limit|not[ _-]?active)/,
    /payment[ _-]?required/,
    /(?:credit|balance)s? (?:is |are )?(?:too low|exhausted|used up)/,
  ]
    .map(({ source }) => source)
    .join('|'),
  'i',
)
