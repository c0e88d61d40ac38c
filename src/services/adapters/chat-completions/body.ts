/** A response's body: its bytes under limits on waiting, or all of it as text under a limit on length. */
import { before } from './before.ts'
import { createPieces } from './pieces.ts'
import type { Watchdog } from './watchdog.ts'

/** Gives the next bytes, undefined at the end. */
export type Read = () => Promise<Uint8Array | undefined>

/** What a body is read under: an abort of `transport` ends a read, whatever the body makes of it. */
export interface Watch {
  readonly watchdog: Watchdog
  readonly transport: AbortSignal
}

/** Reads `body` under the limits of its watchdog. */
export function readerOf(body: ReadableStream<Uint8Array> | null, { watchdog, transport }: Watch): Read {
  if (body === null) return async () => undefined
  const reader = body.getReader()
  const next = () => before(transport, reader.read())
  return async () => {
    const { value } = await watchdog.during(next)
    if (value !== undefined && value.length > 0) watchdog.sawByte()
    return value
  }
}

/** The first `max` characters of a body as UTF-8; `cut` if there was more, which is not read. Blanks are no progress. */
export async function readText(
  read: Read,
  max: number,
  watchdog: Watchdog,
): Promise<{ readonly text: string; readonly cut: boolean }> {
  const decoder = new TextDecoder()
  const pieces = createPieces()
  let length = 0
  while (length <= max) {
    const bytes = await read()
    if (bytes === undefined) return { text: pieces.text(), cut: false }
    const piece = decoder.decode(bytes, { stream: true })
    if (piece.trim() !== '') watchdog.sawProgress()
    pieces.add(piece)
    length += piece.length
  }
  return { text: pieces.text().slice(0, max), cut: true }
}
