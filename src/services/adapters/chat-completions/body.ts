/** A body read as text, up to a limit. */

/** Waits for one read, under whatever limits there are. */
export type Pull = <T>(read: () => Promise<T>) => Promise<T>

/** The first `max` characters of `body` as UTF-8; `cut` if there was more, which is not read. */
export async function readBody(
  body: ReadableStream<Uint8Array> | null,
  max: number,
  pull: Pull,
): Promise<{ readonly text: string; readonly cut: boolean }> {
  if (body === null) return { text: '', cut: false }
  const reader = body.getReader()
  const decoder = new TextDecoder()
  const parts: string[] = []
  let length = 0
  while (length <= max) {
    const { done, value } = await pull(() => reader.read())
    if (done) return { text: parts.join(''), cut: false }
    const part = decoder.decode(value, { stream: true })
    parts.push(part)
    length += part.length
  }
  await reader.cancel()
  return { text: parts.join('').slice(0, max), cut: true }
}
