/**
 * What an adapter tolerated, for whoever watches: a channel of Node's `diagnostics_channel`, free when nobody
 * listens. Nothing that is published here changes an answer, and no secret is: a channel is the whole process's, so
 * those of every agent and of every request under way are masked, whoever they belong to.
 */
import { channel } from 'node:diagnostics_channel'
import { maskedByAll } from '../../masking/mask.ts'

/** Subscribe to it by name: `diagnostics_channel.subscribe('pawl:wire', (note) => ...)`. */
export const WIRE_CHANNEL = 'pawl:wire'

/** One tolerated oddity. `detail` is masked, then cut to 200 characters. */
export interface WireNote {
  readonly kind:
    | 'mislabelled'
    | 'payload-skipped'
    | 'payloads-glued'
    | 'done-missing'
    | 'calls-missing'
    | 'late-content'
    | 'suspicious-text'
    | 'usage-unreadable'
    | 'error-frame'
    | 'call-repeated'
    | 'model-warning'
  readonly detail: string
}

const wire = channel(WIRE_CHANNEL)

/** Publishes a note, if anybody listens; what takes work to tell is told by a function, undefined for nothing. */
export function note(kind: WireNote['kind'], detail: string | (() => string | undefined) = ''): void {
  if (!wire.hasSubscribers) return
  const told = typeof detail === 'string' ? detail : detail()
  if (told !== undefined) wire.publish({ kind, detail: maskedByAll(told).slice(0, 200) } satisfies WireNote)
}
