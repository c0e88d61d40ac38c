/**
 * What one answer may hold while it is on its way, so that one without end is not kept without end. An agent allows far
 * less; these hold also for a reader that has no bound of its own, and for what is kept before anything is said.
 */
import type { LlmFailure } from '../../../log/messages.ts'
import { LlmError } from '../../errors.ts'

/** Characters of one answer: half of what one string can hold. */
const MAX_LENGTH = 2 ** 28

/** More are no answer. */
const MAX_BLOCKS = 10_000

/** Room for the characters of one answer. */
export interface Room {
  /** @throws LlmError RESPONSE_TOO_LARGE once there is none left. */
  take(characters: number): void
}

/** Room of which nothing is taken yet. */
export function createRoom(): Room {
  let taken = 0
  return {
    take(characters) {
      taken += characters
      if (taken > MAX_LENGTH) throw new LlmError(TOO_LARGE)
    },
  }
}

/**
 * Holds a count of blocks, or of what may become one, before there is one more.
 * @throws LlmError MALFORMED_RESPONSE
 */
export function checkCount(count: number): void {
  if (count >= MAX_BLOCKS) throw new LlmError(TOO_MANY_BLOCKS)
}

const TOO_LARGE: LlmFailure = Object.freeze({
  message: `The answer has more than ${MAX_LENGTH} characters`,
  code: 'RESPONSE_TOO_LARGE',
})

const TOO_MANY_BLOCKS: LlmFailure = Object.freeze({
  message: `The answer has more than ${MAX_BLOCKS} blocks`,
  code: 'MALFORMED_RESPONSE',
})
