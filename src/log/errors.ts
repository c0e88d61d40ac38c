/**
 * Errors thrown by Pawl. Each has a stable `code`, its facts as fields, and a message that names the thing and the
 * way out. Failures that are part of a run (model, tool, hook) are data in the log and never these.
 */

/** Base of every error Pawl throws. A tool that throws one gets `{ name, code }` into its `tool/result.error`. */
export class PawlError extends Error {
  readonly code: string
  constructor(message: string, code: string, options?: ErrorOptions) {
    super(message, options)
    this.name = new.target.name
    this.code = code
  }
}

/** The session has a living owner: in this process, in another one, or in another agent. */
export class SessionBusy extends PawlError {
  readonly sessionId: string
  readonly owner: string
  constructor(sessionId: string, owner: string) {
    super(
      `Session "${sessionId}" is in use by ${owner}: close that agent first, or open with \`steal: true\``,
      'SESSION_BUSY',
    )
    this.sessionId = sessionId
    this.owner = owner
  }
}

/** Another owner took the session; this one may not write any more. The log is intact. */
export class Fenced extends PawlError {
  readonly epoch: number
  constructor(epoch: number, message = `Epoch ${epoch} was fenced: another owner took the session; open it again`) {
    super(message, 'FENCED')
    this.epoch = epoch
  }
}

/** An append named a position that is not the head of the log. */
export class SeqConflict extends PawlError {
  readonly expected: number
  readonly actual: number
  constructor(expected: number, actual: number) {
    super(`Append expected the log's head at ${expected} but it is at ${actual}: reopen the session`, 'SEQ_CONFLICT')
    this.expected = expected
    this.actual = actual
  }
}

/** No session of that id is in the store. */
export class SessionNotFound extends PawlError {
  readonly sessionId: string
  constructor(sessionId: string) {
    super(`No session "${sessionId}" in this store: pass \`create\`, or check the id`, 'SESSION_NOT_FOUND')
    this.sessionId = sessionId
  }
}

export type StoreFailureReason =
  | 'locked'
  | 'read-only'
  | 'full'
  | 'damaged'
  | 'newer-schema'
  | 'network-file-system'
  | 'io'
  | 'timeout'

/** The store could not do what was asked. What was not acknowledged may be lost; what was acknowledged is not. */
export class StoreFailure extends PawlError {
  readonly reason: StoreFailureReason
  constructor(reason: StoreFailureReason, message: string, options?: ErrorOptions) {
    super(message, 'STORE_FAILURE', options)
    this.reason = reason
  }
}

/** The log, or one of its events, was written by a newer version. */
export class LogTooNew extends PawlError {
  readonly type: string | undefined
  readonly format: number | undefined
  constructor(facts: { type?: string; format?: number }) {
    const what = facts.type !== undefined ? `event type "${facts.type}"` : `log format ${facts.format}`
    super(`This log has ${what}, which this version does not know: use a newer Pawl`, 'LOG_TOO_NEW')
    this.type = facts.type
    this.format = facts.format
  }
}

/** A fork was asked for where none can be. */
export class ForkRefused extends PawlError {
  constructor(message: string, code: 'INVALID_BOUNDARY' | 'SESSION_ALREADY_EXISTS') {
    super(message, code)
  }
}

/** A value is not lossless JSON. `path` names the offending place, `$` being the value itself. */
export class NotJson extends PawlError {
  readonly path: string
  constructor(path: string, why: string) {
    super(`Not JSON at ${path}: ${why}`, 'NOT_JSON')
    this.path = path
  }
}

/** An event has an envelope or data the log does not accept. Nothing was recorded. */
export class InvalidEvent extends PawlError {
  constructor(message: string) {
    super(message, 'INVALID_EVENT')
  }
}

/** A stored log breaks a rule; it is refused rather than guessed at. */
export class InvalidLog extends PawlError {
  readonly seq: number
  readonly rule: string
  constructor(seq: number, rule: string, message: string) {
    super(`seq ${seq}: ${rule}: ${message}`, 'INVALID_LOG')
    this.seq = seq
    this.rule = rule
  }
}

/** A value is larger than the log takes. Sizes are bytes of UTF-8 JSON. */
export class TooLarge extends PawlError {
  readonly bytes: number
  readonly max: number
  constructor(what: string, bytes: number, max: number) {
    super(
      `${what} is ${bytes} bytes, more than the ${max} the log takes: shorten it, or keep it in a file`,
      'TOO_LARGE',
    )
    this.bytes = bytes
    this.max = max
  }
}
