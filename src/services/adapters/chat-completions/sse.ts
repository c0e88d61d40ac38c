/**
 * Bytes to server-sent events, as the HTML standard has them: an event exists from its blank line on, one leading BOM
 * is dropped, comments are no events. A code point, a CRLF or a BOM may be cut anywhere.
 */
import { createParser } from 'eventsource-parser'
import { LlmError } from '../../errors.ts'

/** One event with data. `event` is its name, absent for the usual 'message'. */
export interface ServerEvent {
  readonly event?: string
  readonly data: string
}

export interface EventReader {
  /**
   * The events that `bytes` completes, in order; read them all before the next bytes are taken.
   * @throws LlmError RESPONSE_TOO_LARGE after those that came before the one that is too long.
   */
  take(bytes: Uint8Array): Iterable<ServerEvent>
  /** What the end of the body completes. An event its blank line never came for is dropped. */
  end(): Iterable<ServerEvent>
}

/** A reader of one body that keeps `maxEventLength` characters of an unfinished event. */
export function createEventReader(maxEventLength: number): EventReader {
  const decoder = new TextDecoder()
  let ready: ServerEvent[] = []
  let overflown = false
  let last = ''
  const parser = createParser({
    maxBufferSize: maxEventLength,
    onEvent: ({ event, data }) => ready.push(event === undefined ? { data } : { event, data }),
    onError: ({ type }) => {
      overflown ||= type === 'max-buffer-size-exceeded'
    },
  })
  function* eventsIn(text: string): Generator<ServerEvent> {
    if (text === '') return
    last = text
    parser.feed(text)
    const events = ready
    ready = []
    yield* events
    if (overflown) throw tooLarge(maxEventLength)
  }
  return {
    take: (bytes) => eventsIn(decoder.decode(bytes, { stream: true })),
    // A CR at the very end may be half a CRLF, so the parser waits for more; nothing more comes, and CR ends a line too.
    end: () => eventsIn(last.endsWith('\r') ? '\n' : ''),
  }
}

/** The error of an event, or of a body, that is longer than what is kept. */
export const tooLarge = (maxLength: number): LlmError =>
  new LlmError({
    message: `The server sent more than ${maxLength} characters in one event (maxEventLength)`,
    code: 'RESPONSE_TOO_LARGE',
  })
