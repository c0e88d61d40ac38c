/** The answers the benchmarks' server gives, by name. Bodies of fixed size are made once, before anything is timed. */

/**
 * @typedef {object} Answer
 * @property {string} [type] `text/event-stream` by default.
 * @property {() => Iterable<Uint8Array>} pieces Each is one write, so one frame of a chunked body.
 * @property {number} [pauseMs] Between the first piece and what follows.
 */

/** Events that bring text, of the answers `tokens` and `frames`, and of those whose name ends with `-few`. */
export const TOKENS = { many: 20_000, few: 2_000 }

/** What each of them brings. */
export const WORD = ' pawl'

/** Characters of the answers `long` and `long-few`, and of each of their deltas. */
export const LONG = { many: 100_000_000, few: 2_000_000, delta: 64 }

/** Characters of the one delta in the answers `line-2` and `line-8`. */
export const LINES = { 'line-2': 2_000_000, 'line-8': 8_000_000 }

/** Pieces of the answer `first`: some tokens and the tail. */
const FIRST = 11
const PACKET = 1_460
const WRITE = 16_384

/** An event as the large providers send it. @param {Readonly<Record<string, unknown>>} delta @param {string | null} [finish] */
const event = (delta, finish = null) => {
  const choices = [{ index: 0, delta, logprobs: null, finish_reason: finish }]
  const head = { id: 'chatcmpl-9f3b2c', object: 'chat.completion.chunk', created: 1_760_000_000, model: 'model-1' }
  return `data: ${JSON.stringify({ ...head, system_fingerprint: 'fp_44709d6fcb', choices, usage: null })}\n\n`
}
/** How an answer ends that brought `count` tokens. @param {number} count */
const tailOf = (count) => {
  const usage = { prompt_tokens: 10, completion_tokens: count, total_tokens: count + 10 }
  return `${event({}, 'stop')}data: ${JSON.stringify({ id: 'chatcmpl-9f3b2c', choices: [], usage })}\n\ndata: [DONE]\n\n`
}
const tail = tailOf(TOKENS.many)

const token = Buffer.from(event({ content: WORD }))
/** @param {number} count */
const framesOf = (count) => [...Array.from({ length: count }, () => token), Buffer.from(tailOf(count))]
const frames = { many: framesOf(TOKENS.many), few: framesOf(TOKENS.few) }
const tokens = { many: cut(Buffer.concat(frames.many), WRITE), few: cut(Buffer.concat(frames.few), WRITE) }

/** @type {Readonly<Record<string, Answer>>} */
export const answers = {
  tokens: { pieces: () => tokens.many },
  'tokens-few': { pieces: () => tokens.few },
  frames: { pieces: () => frames.many },
  'frames-few': { pieces: () => frames.few },
  first: { pieces: () => frames.few.slice(-FIRST), pauseMs: 20 },
  long: { pieces: () => long(LONG.many) },
  'long-few': { pieces: () => long(LONG.few) },
  'line-2': { pieces: () => line(LINES['line-2']) },
  'line-8': { pieces: () => line(LINES['line-8']) },
  'endless-line': { pieces: () => endless('data: {"choices":[{"delta":{"content":"', 'x'.repeat(WRITE)) },
  'endless-json': {
    type: 'application/json',
    pieces: () => endless('{"choices":[{"message":{"content":"', 'x'.repeat(WRITE)),
  },
}

/** @param {number} length */
function* long(length) {
  const delta = Buffer.from(event({ content: 'x'.repeat(LONG.delta) }))
  const many = Buffer.concat(Array.from({ length: 64 }, () => delta))
  const events = length / LONG.delta
  for (let sent = 0; sent < events; sent += 64)
    yield sent + 64 <= events ? many : many.subarray(0, (events - sent) * delta.length)
  yield Buffer.from(tail)
}

/** @param {number} length */
const line = (length) => cut(Buffer.from(event({ content: 'x'.repeat(length) }) + tail), PACKET)

/** @param {string} head @param {string} piece */
function* endless(head, piece) {
  yield Buffer.from(head)
  const bytes = Buffer.from(piece)
  for (;;) yield bytes
}

/** @param {Buffer} bytes @param {number} size */
function cut(bytes, size) {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) => bytes.subarray(i * size, (i + 1) * size))
}
