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
}

/**
 * A reader of one body that keeps `maxEventLength` characters of an unfinished event. The end of the body completes
 * none: an event its blank line never came for is dropped.
 */
export function createEventReader(maxEventLength: number): EventReader {
  // Left to drop the mark by itself, the decoder of some versions of Node drops two if the first comes in pieces.
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  let begun = false
  let ready: ServerEvent[] = []
  let overflown = false
  let afterCr = false
  const parser = createParser({
    maxBufferSize: maxEventLength,
    onEvent: ({ event, data }) => ready.push(event === undefined ? { data } : { event, data }),
    onError: ({ type }) => {
      overflown ||= type === 'max-buffer-size-exceeded'
    },
  })
  // What a mark looks like that was encoded twice, the parser drops from the first text it gets, if that is not cut.
  parser.feed('\n')
  const withoutMark = (text: string): string => {
    if (begun || text === '') return text
    begun = true
    return text.startsWith('\uFEFF') ? text.slice(1) : text
  }
  // A CR at the end may be half a CRLF, and the parser would keep its line until another ends, or for good. It ends one
  // either way, so it is made whole here, and the LF that may follow is dropped.
  const withWholeEnds = (text: string): string => {
    const rest = afterCr && text.startsWith('\n') ? text.slice(1) : text
    if (text !== '') afterCr = text.endsWith('\r')
    return afterCr && rest !== '' ? `${rest}\n` : rest
  }
  function* eventsIn(text: string): Generator<ServerEvent> {
    if (text === '') return
    parser.feed(text)
    const events = ready
    ready = []
    yield* events
    if (overflown) throw tooLarge(maxEventLength)
  }
  return {
    take: (bytes) => eventsIn(withWholeEnds(withoutMark(decoder.decode(bytes, { stream: true })))),
  }
}

/** The error of an event, or of a body, that is longer than what is kept. */
export const tooLarge = (maxLength: number): LlmError =>
  new LlmError({
    message: `The server sent more than ${maxLength} characters in one event (maxEventLength)`,
    code: 'RESPONSE_TOO_LARGE',
  })
