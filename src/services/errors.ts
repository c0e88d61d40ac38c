/** Errors of the loop and of its callers; those of the log and the stores stand in `log/errors.ts`. */
import { PawlError } from '../log/errors.ts'
import type { LlmFailure } from '../log/messages.ts'

/** Thrown by an adapter or a hook: its failure goes into the log verbatim. */
export class LlmError extends PawlError {
  readonly failure: LlmFailure
  constructor(failure: LlmFailure, options?: ErrorOptions) {
    super(failure.message, failure.code, options)
    this.failure = Object.freeze({ ...failure })
  }
}

/** An option that cannot be; `option` names it. */
export class InvalidOption extends PawlError {
  readonly option: string
  constructor(option: string, message: string, options?: ErrorOptions) {
    super(`Option "${option}": ${message}`, 'INVALID_OPTION', options)
    this.option = option
  }
}

/** A message id that the session already has, with other content. */
export class DuplicateMessage extends PawlError {
  readonly id: string
  constructor(id: string) {
    super(`Message id "${id}" is already used in this session with other content: use a new id`, 'DUPLICATE_MESSAGE')
    this.id = id
  }
}

/** The agent was closed, or its store failed. */
export class AgentClosed extends PawlError {
  constructor(sessionId: string, options?: ErrorOptions) {
    super(`The agent of session "${sessionId}" is closed: open it again with createAgent`, 'AGENT_CLOSED', options)
  }
}

/** More than 8 MiB waits for the store. */
export class Overloaded extends PawlError {
  constructor(bytes: number) {
    super(`${bytes} bytes wait for the store: await what was sent before sending more`, 'OVERLOADED')
  }
}

/** A hook broke its contract, for example by calling `next()` twice. */
export class HookMisuse extends PawlError {
  readonly hook: string
  constructor(hook: string, message: string) {
    super(`Hook "${hook}": ${message}`, 'HOOK_MISUSE')
    this.hook = hook
  }
}

/** A message given to `run()` did not enter a turn. */
export class MessageDropped extends PawlError {
  constructor(message: string, code: 'MESSAGE_REJECTED' | 'MESSAGE_CANCELED') {
    super(message, code)
  }
}

/** An approval could not be answered. */
export class ApprovalRefused extends PawlError {
  readonly callId: string
  constructor(
    callId: string,
    message: string,
    code: 'APPROVAL_NOT_PENDING' | 'APPROVAL_ALREADY_RESOLVED' | 'APPROVAL_DIGEST_MISMATCH' | 'APPROVAL_EXPIRED',
  ) {
    super(`Call "${callId}": ${message}`, code)
    this.callId = callId
  }
}
