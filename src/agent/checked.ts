/** What a command carries, held to what the log takes before it is sent: recording must not fail for data. */
import { TooLarge } from '../log/errors.ts'
import type { CancelCause, EventMap } from '../log/events.ts'
import { utf8Bytes } from '../log/json.ts'
import { validateNew } from '../log/validate.ts'

/** A copy, frozen. @throws InvalidEvent, NotJson or TooLarge for a cause that the log refuses. */
export const checkedCause = (cause: CancelCause): CancelCause => checked('turn/cancel', { turn: 1, cause }).cause

type Words = { readonly reason?: string; readonly by?: string }

/** Why and by whom a question was answered; without what was left out. @throws InvalidEvent, NotJson or TooLarge */
export function checkedWords({ reason, by }: { readonly [K in keyof Words]?: string | undefined }): Words {
  const words = { ...(reason === undefined ? {} : { reason }), ...(by === undefined ? {} : { by }) }
  checked('tool/approval-resolved', { turn: 1, step: 1, callId: 'c', run: 0, decision: 'denied', ...words })
  return words
}

/** Bytes: other events name the same words again, beside more than this one does. */
const MAX_BYTES = 65_536

function checked<T extends 'turn/cancel' | 'tool/approval-resolved'>(type: T, given: EventMap[T]): EventMap[T] {
  const { data } = validateNew({ type, data: given })
  const bytes = utf8Bytes(JSON.stringify(data))
  if (bytes > MAX_BYTES) throw new TooLarge(type, bytes, MAX_BYTES)
  return data as unknown as EventMap[T]
}
