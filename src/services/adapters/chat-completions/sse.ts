/**
 * Bytes to server-sent events, as the HTML standard has them: an event exists from its blank line on, one leading BOM
 * is dropped, comments are no events. A code point, a CRLF or a BOM may be cut anywhere.
 */
import { createParser } from 'eventsource-parser'
import { LlmError } from '../../errors.ts'

type Bytes = AsyncIterable<Uint8Array> | Iterable<Uint8Array>

/** One event with data. `event` is its name, absent for the usual 'message'. */
export interface ServerEvent {
  readonly event?: string
  readonly data: string
}

export interface ReadOptions {
  /** Characters of one unfinished event that are kept; more is RESPONSE_TOO_LARGE. */
  readonly maxEventLength: number
  /** Told of every piece of the body that is not empty, comments too. */
  readonly onBytes?: () => void
}

/**
 * The events of `body`, in order. Ends with the body; an event its blank line never came for is dropped.
 * @throws LlmError RESPONSE_TOO_LARGE; and whatever reading the body throws.
 */
export async function* readEvents(body: Bytes, { maxEventLength, onBytes }: ReadOptions): AsyncGenerator<ServerEvent> {
  const ready: ServerEvent[] = []
  let overflown = false
  const parser = createParser({
    maxBufferSize: maxEventLength,
    onEvent: ({ event, data }) => ready.push({ data, ...(event !== undefined && { event }) }),
    onError: ({ type }) => {
      overflown ||= type === 'max-buffer-size-exceeded'
    },
  })
  for await (const text of decode(body, onBytes)) {
    parser.feed(text)
    yield* ready.splice(0)
    if (overflown) throw tooLarge(maxEventLength)
  }
}

async function* decode(body: Bytes, onBytes: (() => void) | undefined): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let last = ''
  for await (const bytes of body) {
    if (bytes.length > 0) onBytes?.()
    const text = decoder.decode(bytes, { stream: true })
    if (text === '') continue
    last = text
    yield text
  }
  // A CR at the very end may be half a CRLF, so the parser waits for more; nothing more comes, and CR ends a line too.
  if (last.endsWith('\r')) yield '\n'
}

/** The error of an event, or of a body, that is longer than what is kept. */
export const tooLarge = (maxLength: number): LlmError =>
  new LlmError({
    message: `The server sent more than ${maxLength} characters without ending an event`,
    code: 'RESPONSE_TOO_LARGE',
  })
