/** What a person hands over, made a message: checked as JSON, with an id, frozen. */
import { InvalidEvent, TooLarge } from '../log/errors.ts'
import { MAX_EVENT_BYTES } from '../log/events.ts'
import { toJson, utf8Bytes } from '../log/json.ts'
import type { UserMessage } from '../log/messages.ts'
import { validateNew } from '../log/validate.ts'
import { maskingErrors } from './masking/errors.ts'
import { maskEvent } from './masking/events.ts'
import type { Mask } from './masking/mask.ts'
import type { Input } from './tools/contract.ts'

/**
 * `id` is used unless the input is a message, which brings its own. Secrets are masked, so that the message is what the
 * log will say of it.
 * @throws NotJson with the path, InvalidEvent for a shape that is no user message, TooLarge.
 */
export function toMessage(input: Input, id: string, mask: Mask): UserMessage {
  return maskingErrors(mask, () => {
    const message = maskEvent(mask, 'user/message', toJson(asMessage(input, id), '$'))
    // The guard of the log itself decides what a user message is.
    const { data } = validateNew({ type: 'user/message', data: message, surfaceOp: 'append' })
    const bytes = utf8Bytes(JSON.stringify(data))
    if (bytes > MAX_MESSAGE_BYTES) throw new TooLarge('message', bytes, MAX_MESSAGE_BYTES)
    return data as UserMessage
  })
}

/** Room for the events that carry it: it waits in the inbox before it is in the conversation. */
const MAX_MESSAGE_BYTES = MAX_EVENT_BYTES - 1_024

function asMessage(input: Input, id: string): unknown {
  if (typeof input === 'string') return withText(id, [{ type: 'text', text: input }])
  if (Array.isArray(input)) return withText(id, input)
  if (typeof input !== 'object' || input === null) {
    throw new InvalidEvent('A message is a string, a list of content blocks, or a message with role "user"')
  }
  return input
}

const withText = (id: string, content: readonly unknown[]) => ({ id, role: 'user', content, source: { kind: 'user' } })
