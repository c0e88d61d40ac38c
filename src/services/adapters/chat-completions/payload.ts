/** An event's data to the JSON objects in it; oddities that servers are known for are skipped, with a note. */
import { LlmError } from '../../errors.ts'
import { note } from './diagnostics.ts'
import { withRawArguments } from './raw-arguments.ts'
import { isObject, jsonText, parseJson, type WireObject } from './wire-json.ts'

const SHOWN = 120
const TOO_DEEP = '(nested too deep to be shown)'

/**
 * The objects of one event. Usually one; none for an empty payload, a comment that a proxy made data, or JSON that is
 * no object; several where a server forgot the blank lines between them.
 * @throws LlmError MALFORMED_RESPONSE, which shows the first 120 characters.
 */
export function parsePayload(data: string): readonly WireObject[] {
  const whole = parseWire(data)
  if (whole !== undefined) return isObject(whole.value) ? [whole.value] : skipped(data)
  if (data.trim() === '') return []
  if (data.startsWith(':')) return skipped(data)
  const lines = data.split('\n').filter((line) => line.trim() !== '')
  const each = lines.map(parseWire).filter((parsed) => parsed !== undefined)
  if (lines.length < 2 || each.length < lines.length) throw malformed(data)
  note('payloads-glued', data)
  return objectsOf(each.map((parsed) => parsed.value))
}

/** What `text` parses to, boxed, arguments always as text; undefined if it is no JSON. */
export const parseWire = (text: string): { readonly value: unknown } | undefined => parseJson(withRawArguments(text))

const objectsOf = (values: readonly unknown[]): readonly WireObject[] =>
  values.flatMap((value) => (isObject(value) ? [value] : skipped(() => jsonText(value) ?? TOO_DEEP)))

function skipped(data: string | (() => string)): readonly WireObject[] {
  note('payload-skipped', data)
  return []
}

const malformed = (data: string): LlmError =>
  new LlmError({
    message: `The server sent an event that is not JSON: ${data.slice(0, SHOWN)}`,
    code: 'MALFORMED_RESPONSE',
  })
