/** The events of a body that comes in `packets`. */
import { createEventReader, type ServerEvent } from '../../src/services/adapters/chat-completions/sse.ts'

/** Reads them to the end. Throws what the reader throws. */
export function* readEvents(
  packets: Iterable<Uint8Array>,
  { maxEventLength }: { readonly maxEventLength: number },
): Generator<ServerEvent> {
  const reader = createEventReader(maxEventLength)
  for (const packet of packets) yield* reader.take(packet)
}
