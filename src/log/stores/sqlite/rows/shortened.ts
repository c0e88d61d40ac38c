/** Digests and ids are hex; base64 says them in two thirds of the characters. */
import { Damaged } from './checked.ts'

const DIGEST = /^sha256:[0-9a-f]{64}$/
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Of what is short for them. */
const DIGEST_LENGTH = 43
const UUID_LENGTH = 22

/** What is short for a digest or an id; undefined for any other text. */
export function shortened(text: string): string | undefined {
  if (text.length === 71 && DIGEST.test(text)) return Buffer.from(text.slice(7), 'hex').toString('base64url')
  if (text.length === 36 && UUID.test(text)) return Buffer.from(text.replaceAll('-', ''), 'hex').toString('base64url')
  return undefined
}

/** The text that `short` stands for. @throws Damaged */
export function lengthened(short: string): string {
  const bytes = Buffer.from(short, 'base64url')
  if (bytes.toString('base64url') !== short) throw new Damaged('base64')
  const hex = bytes.toString('hex')
  if (short.length === DIGEST_LENGTH) return `sha256:${hex}`
  if (short.length !== UUID_LENGTH) throw new Damaged('the length of an id or a digest')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
