/** The history a model is shown, derived from a log and from nothing else. */
import type { SessionEvent } from './events.ts'
import type { Message } from './messages.ts'
import { createSurface } from './projections/surface.ts'

/**
 * The messages of the conversation after all of `events`, which start at seq 0. Frozen; the messages are the log's own.
 * @throws InvalidEvent if a replacement in the log cannot be.
 */
export function deriveMessages(events: Iterable<SessionEvent>): readonly Message[] {
  const surface = createSurface()
  for (const event of events) surface.place(event)
  return surface.messages()
}
