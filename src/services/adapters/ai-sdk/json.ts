/** Between the log's frozen JSON and what providers give and take. */
import { type Json, toJson } from '../../../log/json.ts'
import { note } from '../chat-completions/diagnostics.ts'
import type { PlainJson, PlainOptions } from './model.ts'

/** A copy that its taker may change. */
export function thawed(json: Json): PlainJson {
  if (typeof json !== 'object' || json === null) return json
  return isList(json) ? json.map(thawed) : thawedObject(json)
}

/** A copy of an object that its taker may change; a key without a value is left out. */
export function thawedObject(json: { readonly [key: string]: Json | undefined }): { [key: string]: PlainJson } {
  const entries = Object.entries(json).flatMap(([key, value]) => (value === undefined ? [] : [[key, thawed(value)]]))
  return Object.fromEntries(entries)
}

/** By provider, as its taker may change it; what is no object is left out, and undefined if nothing is left. */
export function optionsIn(json: Json | undefined): PlainOptions | undefined {
  if (!isFields(json)) return undefined
  const entries = Object.entries(json).flatMap(([key, value]) => (isFields(value) ? [[key, thawedObject(value)]] : []))
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

/**
 * What a provider gave, as the log can keep it; bytes become base64. Undefined, with a note, for what no log can hold,
 * and for undefined.
 */
export function jsonOf(value: unknown): Json | undefined {
  if (value === undefined) return undefined
  try {
    return toJson(JSON.parse(JSON.stringify(value, withBase64)))
  } catch (thrown) {
    // A cycle, a bigint, nesting too deep, or an accessor of the provider's own: nothing of ours throws here.
    note('payload-skipped', String(thrown))
    return undefined
  }
}

/** `JSON.stringify` has asked a Buffer for its own form by the time it asks here; the object still has the bytes. */
function withBase64(this: unknown, key: string, value: unknown): unknown {
  const given: unknown = typeof this === 'object' && this !== null ? Reflect.get(this, key) : undefined
  return given instanceof Uint8Array ? Buffer.from(given).toString('base64') : value
}

const isList = (json: Json): json is readonly Json[] => Array.isArray(json)

/** True for a JSON object. */
export const isFields = (json: Json | undefined): json is { readonly [key: string]: Json } =>
  typeof json === 'object' && json !== null && !isList(json)
