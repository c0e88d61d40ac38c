/**
 * The careful door into the log, for what went in by the trusted one: every event is checked and masked once more. It
 * must come to the very same event, or something was trusted that should not have been.
 */
import type { SessionEvent } from '../../src/log/events.ts'
import { canonicalJson, type Json } from '../../src/log/json.ts'
import { validateNew } from '../../src/log/validate.ts'
import { maskEvent } from '../../src/services/masking/events.ts'
import type { Mask } from '../../src/services/masking/mask.ts'

/** What is wrong with the first event that would not have come through the careful door as it is; undefined if all would. */
export function untrustworthy(events: readonly SessionEvent[], mask: Mask): string | undefined {
  for (const event of events) {
    const wrong = wrongWith(event, mask)
    if (wrong !== undefined) return `seq ${event.seq}, ${event.type}: ${wrong}`
  }
  return undefined
}

function wrongWith({ seq, time, ...event }: SessionEvent, mask: Mask): string | undefined {
  let data: Json
  try {
    data = validateNew(event).data
  } catch (error) {
    return `it would be refused: ${error}`
  }
  const masked = maskEvent(mask, event.type, data)
  if (canonicalJson(masked) !== canonicalJson(event.data as unknown as Json)) return 'it would be masked'
  const open = openPart(event.data)
  return open === undefined ? undefined : `${open} can be changed`
}

/** The place of something in the value that is not frozen. */
function openPart(value: unknown, place = 'data'): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  if (!Object.isFrozen(value)) return place
  for (const [key, item] of Object.entries(value)) {
    const open = openPart(item, `${place}.${key}`)
    if (open !== undefined) return open
  }
  return undefined
}
