/**
 * What a body is, told by how it begins. Servers behind proxies send events as JSON or as text, and JSON as a stream of
 * events: where the bytes say plainly what they are, the header is not asked.
 */
import type { Read } from './body.ts'
import { createEventReader } from './sse.ts'
import { isObject, parseJson } from './wire-json.ts'

/** 'other' is neither: a page, words. */
export type Form = 'events' | 'json' | 'other'

/** The form of a body, and a read that gives all of it, what was looked at included. */
export interface Begun {
  readonly form: Form
  readonly read: Read
}

/** Characters that are looked at: of a body that begins with more blanks only its content type tells. */
const LOOKED_AT = 1_024

/** Reads as much of a body as it takes to tell its form; `type` is its content type, '' for none. */
export async function begun(read: Read, type: string): Promise<Begun> {
  const seen: Uint8Array[] = []
  let beginning = ''
  for (;;) {
    const bytes = await read()
    if (bytes === undefined) return { form: statedForm(type, beginning), read: again(seen, ended) }
    seen.push(bytes)
    beginning += Buffer.from(bytes.subarray(0, LOOKED_AT - beginning.length)).toString('latin1')
    const plain = plainForm(beginning)
    if (plain === 'undecided' && beginning.length < LOOKED_AT) continue
    const isPlain = plain === 'events' || plain === 'json'
    return { form: isPlain ? plain : statedForm(type, beginning), read: again(seen, read) }
  }
}

/** A read of a text. */
export const readOf = (text: string): Read => again([new TextEncoder().encode(text)], ended)

const ended: Read = async () => undefined

function again(seen: readonly Uint8Array[], read: Read): Read {
  let next = 0
  return () => (next < seen.length ? Promise.resolve(seen[next++]) : read())
}

/** True where a stated content type says that the body has another form. */
export const contradicts = (type: string, form: Form): boolean => type !== '' && statedForm(type, 'words') !== form

/** For a body that begins so, and does not say plainly what it is. While it is blank, text may yet become a stream. */
function statedForm(type: string, beginning: string): Form {
  if (/html|xml/i.test(type)) return 'other'
  if (/\bjson\b/i.test(type)) return 'json'
  return type === '' || /event-stream/i.test(type) || beginning.trim() === '' ? 'events' : 'other'
}

const BYTE_ORDER_MARK = '\u00ef\u00bb\u00bf'
const FIELDS = ['data:', 'event:', 'id:', 'retry:', ':']

/** Of text in which each character is a byte, or which has no mark. */
function plainForm(beginning: string): Form | 'undecided' {
  if (BYTE_ORDER_MARK.startsWith(beginning)) return 'undecided'
  const text = beginning.startsWith(BYTE_ORDER_MARK) ? beginning.slice(BYTE_ORDER_MARK.length) : beginning
  const line = text.replace(/^[\r\n]+/, '')
  if (FIELDS.some((field) => line.startsWith(field))) return 'events'
  if (line.trimStart().startsWith('{')) return 'json'
  return line.trim() === '' || FIELDS.some((field) => field.startsWith(line)) ? 'undecided' : 'other'
}

/** Of a refusal that came as events the first that is an object, as JSON; any other body as it is. */
export function unwrapped(body: string): string {
  if (plainForm(body) !== 'events') return body
  const events = createEventReader(2 * body.length + 2).take(new TextEncoder().encode(`${body}\n\n`))
  for (const { data } of events) if (isObject(parseJson(data)?.value)) return data
  return body
}
