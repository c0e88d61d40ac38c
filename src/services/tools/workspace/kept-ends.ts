/** Keeps the start and the end of an output of any length; what falls between is counted. */
import { StringDecoder } from 'node:string_decoder'

export interface KeptEnds {
  push(chunk: Buffer): void
  /** The whole as UTF-8, or both ends with a line between them that says how many bytes are missing. */
  text(): string
}

/** Holds `maxBytes`, half for each end. */
export function keepEnds(maxBytes: number): KeptEnds {
  const half = Math.floor(maxBytes / 2)
  let head = Buffer.alloc(0)
  let tail = Buffer.alloc(0)
  let total = 0
  return {
    push(chunk) {
      total += chunk.length
      const room = half - head.length
      if (room > 0) head = Buffer.concat([head, chunk.subarray(0, room)])
      // A copy: a slice would keep all of the chunk it is cut from.
      if (chunk.length > room) tail = Buffer.from(Buffer.concat([tail, chunk.subarray(room)]).subarray(-half))
    },
    text() {
      const missing = total - head.length - tail.length
      if (missing === 0) return Buffer.concat([head, tail]).toString('utf8')
      return `${withoutCutEnd(head)}\n[${missing} bytes left out here]\n${withoutCutStart(tail)}`
    },
  }
}

const withoutCutEnd = (bytes: Buffer): string => new StringDecoder('utf8').write(bytes)

function withoutCutStart(bytes: Buffer): string {
  const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80
  let start = 0
  while (start < 3 && isContinuation(bytes[start])) start += 1
  return bytes.toString('utf8', start)
}
