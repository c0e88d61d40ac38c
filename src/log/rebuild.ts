/** Any request, derived again from the log. What a model was shown stands in the log, and nothing else was shown. */
import { type Attempt, type AttemptPlace, trackAttempts } from './attempts.ts'
import { PawlError } from './errors.ts'
import type { SessionEvent } from './events.ts'
import type { Message } from './messages.ts'
import { createSurface } from './projections/surface.ts'
import type { LlmRequest, RequestHeader } from './requests.ts'

/** A request of a header and messages, frozen; both must be frozen already. */
export function requestOf(header: RequestHeader, messages: readonly Message[], sessionId: string): LlmRequest {
  const { config, system, tools } = header
  return Object.freeze({
    ...config,
    messages,
    ...(system === undefined ? {} : { system }),
    ...(tools === undefined ? {} : { tools }),
    sessionId,
  })
}

/**
 * The request of one attempt, as it was sent. Events do not hold the session's id: it is `options.sessionId`, or ''.
 * @throws PawlError ATTEMPT_NOT_FOUND if the log has no such attempt, or no request/header by then.
 */
export function rebuildRequest(
  events: Iterable<SessionEvent>,
  at: AttemptPlace,
  options: { readonly sessionId?: string } = {},
): LlmRequest {
  const found = findAttempt(events, at)
  const where = `attempt ${at.attempt} of step ${at.step} in turn ${at.turn}`
  if (!found) throw new PawlError(`The log has no ${where}: check the numbers`, 'ATTEMPT_NOT_FOUND')
  if (!found.header) {
    throw new PawlError(
      `The ${where} ended before its request/header was recorded: it asked nothing`,
      'ATTEMPT_NOT_FOUND',
    )
  }
  return requestOf(found.header, found.messages, options.sessionId ?? '')
}

function findAttempt(events: Iterable<SessionEvent>, at: AttemptPlace): Attempt | undefined {
  const surface = createSurface()
  const tracker = trackAttempts(surface)
  let found: Attempt | undefined
  for (const event of events) {
    tracker.note(event)
    surface.place(event)
    if (tracker.isAsking(at)) found = tracker.current() ?? found
    else if (found) return found
  }
  return found
}
