/** A body as the network brings it, and every way to cut it that a reader must not notice. */
import type { CorpusReply, Piece } from './format.ts'

/** What happens on the connection. */
export type Packet = Uint8Array | { readonly wait: number } | { readonly end: 'open' | 'reset' }

export const isBytes = (packet: Packet): packet is Uint8Array => packet instanceof Uint8Array

/** The packets of a body as its file has them. */
export const packetsOf = ({ body = [] }: CorpusReply): readonly Packet[] => body.flatMap(packetsIn)

function packetsIn(piece: Piece): readonly Packet[] {
  if (typeof piece === 'string') return [Buffer.from(piece, 'utf8')]
  if ('hex' in piece) return [Buffer.from(piece.hex.replaceAll(' ', ''), 'hex')]
  if ('base64' in piece) return [Buffer.from(piece.base64, 'base64')]
  if ('data' in piece) return [Buffer.from(`data: ${JSON.stringify(piece.data)}\n\n`, 'utf8')]
  if ('repeat' in piece) return repeated(piece.of.flatMap(packetsIn), piece.repeat)
  if ('join' in piece) return recut(Buffer.concat(piece.join.map(bytesIn)), piece.every)
  return [piece]
}

/** A piece as one; millions of repetitions are no packets each. */
function bytesIn(piece: Piece): Uint8Array {
  if (typeof piece === 'string' || !('repeat' in piece)) return Buffer.concat(packetsIn(piece).filter(isBytes))
  const once = Buffer.concat(piece.of.map(bytesIn))
  return Buffer.alloc(once.length * piece.repeat, once)
}

const repeated = (packets: readonly Packet[], times: number): readonly Packet[] =>
  Array.from({ length: times }, () => packets).flat()

function recut(bytes: Uint8Array, every = bytes.length): readonly Packet[] {
  if (bytes.length === 0) return [bytes]
  const count = Math.ceil(bytes.length / every)
  return Array.from({ length: count }, (_, i) => bytes.subarray(i * every, (i + 1) * every))
}

/** Bodies up to this many bytes are cut at every byte. */
export const SMALL = 600

/** In bytes. */
const HUGE = 64 * 1024

/** True for a body that is about its size. */
export const isHuge = (packets: readonly Packet[]): boolean =>
  packets.filter(isBytes).reduce((sum, { length }) => sum + length, 0) > HUGE

/** One way to cut a body, and its name for messages. */
export interface Split {
  readonly name: string
  readonly packets: readonly Packet[]
}

/**
 * The body as it is written; then, unless time passes in it, its bytes in one packet, one by one, and in two pieces;
 * each also with empty packets around. Two pieces are cut at every byte of a small body where `most` allows it, and at
 * about `most` places of any other. A huge body is cut as it is written, and not at all.
 */
export function* splitsOf(packets: readonly Packet[], most: number): Generator<Split> {
  yield { name: 'as written', packets }
  if (packets.some((packet) => 'wait' in packet)) return
  const bytes = Buffer.concat(packets.filter(isBytes))
  const end = packets.filter((packet) => !isBytes(packet))
  if (bytes.length < 2) return
  if (bytes.length > HUGE) return yield { name: 'in one packet', packets: [bytes, ...end] }
  const cut = (name: string, parts: readonly Uint8Array[]): Split[] => [
    { name, packets: [...parts, ...end] },
    { name: `${name}, empty ones between`, packets: [EMPTY, ...parts.flatMap((part) => [part, EMPTY]), ...end] },
  ]
  yield* cut('in one packet', [bytes])
  yield* cut('byte by byte', recut(bytes, 1).filter(isBytes))
  for (const at of placesIn(bytes, most)) {
    yield* cut(`cut at byte ${at}`, [bytes.subarray(0, at), bytes.subarray(at)])
  }
}

const EMPTY = new Uint8Array(0)

/** Every place inside a character or a line end, and others evenly, up to about `most`. */
function* placesIn(bytes: Uint8Array, most: number): Generator<number> {
  const limit = bytes.length <= SMALL ? most : Math.min(most, SMALL)
  const stride = Math.max(1, Math.floor((bytes.length - 1) / limit))
  for (let at = 1; at < bytes.length; at++) {
    if (at % stride === 0 || isDelicate(bytes[at - 1] ?? 0, bytes[at] ?? 0)) yield at
  }
}

const isDelicate = (before: number, next: number): boolean => (next & 0xc0) === 0x80 || (before === 13 && next === 10)
