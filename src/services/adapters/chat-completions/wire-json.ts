/** Reading JSON that a server sent: nothing is where it should be until looked at. */

/** A JSON object of unknown content. */
export type WireObject = { readonly [key: string]: unknown }

/** True for a JSON object; arrays and null are none. */
export const isObject = (value: unknown): value is WireObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** `value` as an object, an empty one if it is none. */
export const objectIn = (value: unknown): WireObject => (isObject(value) ? value : {})

/** `value` if it is a string, else `''`. */
export const textIn = (value: unknown): string => (typeof value === 'string' ? value : '')

/** `value` as a list, an empty one if it is none. */
export const listIn = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])

/** What `text` parses to, boxed; undefined if it is no JSON. */
export function parseJson(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) }
  } catch {
    // JSON.parse throws a SyntaxError and nothing else.
    return undefined
  }
}

/** A parsed value as JSON; undefined if it is nested too deep to be written, though it could be read. */
export function jsonText(value: unknown): string | undefined {
  try {
    return JSON.stringify(value)
  } catch {
    // A RangeError of the call stack: a value that was parsed has no cycle and no accessor.
    return undefined
  }
}
