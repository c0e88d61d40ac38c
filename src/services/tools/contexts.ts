/** Messages that a tool or a hook adds after a step's results. One that the session has is not added again. */
import { isDeepStrictEqual } from 'node:util'
import type { UserMessage } from '../../log/messages.ts'
import type { Session } from '../../log/session.ts'
import { DuplicateMessage } from '../errors.ts'

/** The list with the message, or as it was if it is in there or in the session. @throws DuplicateMessage */
export function withContext(
  { session }: { readonly session: Session },
  list: readonly UserMessage[],
  message: UserMessage,
): readonly UserMessage[] {
  const here = list.find(({ id }) => id === message.id)
  if (here === undefined && !session.hasMessageId(message.id)) return [...list, message]
  if (isDeepStrictEqual(here ?? session.messageOf(message.id), message)) return list
  throw new DuplicateMessage(message.id)
}
