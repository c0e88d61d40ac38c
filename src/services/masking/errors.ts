/** Errors that go out to callers: their messages are masked, and so are those of the errors that caused them. */
import { PawlError } from '../../log/errors.ts'
import type { Mask } from './mask.ts'

const MAX_DEPTH = 8

/** Masks the error in place, if it is one of ours: its message, its stack, and what caused it. Returns it. */
export function maskError<T>(mask: Mask, error: T): T {
  if (error instanceof PawlError) maskOwn(mask, error, 0)
  return error
}

/** Runs `act`; what it throws is masked. */
export function maskingErrors<T>(mask: Mask, act: () => T): T {
  try {
    return act()
  } catch (error) {
    throw maskError(mask, error)
  }
}

function maskOwn(mask: Mask, error: PawlError, depth: number): void {
  replace(mask, error, 'message')
  replace(mask, error, 'stack')
  if (error.cause !== undefined) error.cause = masked(mask, error.cause, depth + 1)
}

function replace(mask: Mask, error: Error, key: 'message' | 'stack'): void {
  const text = error[key]
  if (typeof text !== 'string') return
  const shown = mask.text(text)
  if (shown !== text) Object.defineProperty(error, key, { value: shown, writable: true, configurable: true })
}

/** A cause that is not ours is left as it is for whoever holds it; one that shows a secret is replaced by its words. */
function masked(mask: Mask, cause: unknown, depth: number): unknown {
  if (typeof cause === 'string') return mask.text(cause)
  if (!(cause instanceof Error) || depth > MAX_DEPTH) return cause
  if (cause instanceof PawlError) {
    maskOwn(mask, cause, depth)
    return cause
  }
  const inner = cause.cause === undefined ? undefined : masked(mask, cause.cause, depth + 1)
  const message = mask.text(cause.message)
  const stack = mask.text(cause.stack ?? '')
  if (message === cause.message && stack === (cause.stack ?? '') && inner === cause.cause) return cause
  const shown = new Error(message, inner === undefined ? undefined : { cause: inner })
  Object.defineProperties(shown, { name: hidden(cause.name), stack: hidden(stack) })
  return shown
}

const hidden = (value: string) => ({ value, writable: true, configurable: true })
