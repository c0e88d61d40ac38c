/** The words of a command, held to what the log takes before they become one: inside the chart nothing may be refused. */
import { InvalidEvent, TooLarge } from '../log/errors.ts'
import type { CancelCause } from '../log/events.ts'
import { utf8Bytes } from '../log/json.ts'
import { validateNew } from '../log/validate.ts'

/** Bytes: the events that name a reason, and the result that tells the model of it, hold more than that. */
const MAX_WORDS = 65_536

/** @throws NotJson, InvalidEvent, TooLarge */
export function assertCause(cause: CancelCause): void {
  validateNew({ type: 'turn/cancel', data: { turn: 1, cause } })
  assertFits('cause', JSON.stringify(cause))
}

/** Whether `assertCause` would take it. */
export function isCause(cause: CancelCause): boolean {
  try {
    assertCause(cause)
    return true
  } catch {
    // Every refusal means the same here: it is refused, with its reason, where commands are served.
    return false
  }
}

/** @throws InvalidEvent, TooLarge */
export function assertWords(words: { readonly reason?: string | undefined; readonly by?: string | undefined }): void {
  for (const [name, given] of Object.entries(words)) {
    if (given === undefined) continue
    if (typeof given !== 'string') throw new InvalidEvent(`${name} must be a string`)
    assertFits(name, given)
  }
}

function assertFits(name: string, text: string): void {
  const bytes = utf8Bytes(text)
  if (bytes > MAX_WORDS) throw new TooLarge(name, bytes, MAX_WORDS)
}
