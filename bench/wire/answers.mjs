/** The answers the benchmarks' server gives, by name. Bodies of fixed size are made once, before anything is timed. */

/**
 * @typedef {object} Answer
 * @property {string} [type] `text/event-stream` by default.
 * @property {() => Iterable<Uint8Array>} pieces Each is one write, so one frame of a chunked body.
 */

/** Events of a `tokens` or `frames` answer that bring text. */
export const TOKENS = 20_000

/** What each of them brings. */
export const WORD = ' pawl'

/** Characters of the `long` answer, and of each of its deltas. */
export const LONG = { length: 100_000_000, delta: 64 }

/** Characters of the one delta in the answers `line-2` and `line-8`. */
export const LINES = { 'line-2': 2_000_000, 'line-8': 8_000_000 }

const PACKET = 1_460
const WRITE = 16_384

/** An event as the large providers send it. @param {Readonly<Record<string, unknown>>} delta @param {string | null} [finish] */
const event = (delta, finish = null) => {
  const choices = [{ index: 0, delta, logprobs: null, finish_reason: finish }]
  const head = { id: 'chatcmpl-9f3b2c', object: 'chat.completion.chunk', created: 1_760_000_000, model: 'model-1' }
  return `data: ${JSON.stringify({ ...head, system_fingerprint: 'fp_44709d6fcb', choices, usage: null })}\n\n`
}
const usage = { prompt_tokens: 10, completion_tokens: TOKENS, total_tokens: TOKENS + 10 }
const tail = `${event({}, 'stop')}data: ${JSON.stringify({ id: 'chatcmpl-9f3b2c', choices: [], usage })}\n\ndata: [DONE]\n\n`

const token = Buffer.from(event({ content: WORD }))
const tokens = cut(Buffer.concat([...Array.from({ length: TOKENS }, () => token), Buffer.from(tail)]), WRITE)
const frames = [...Array.from({ length: TOKENS }, () => token), Buffer.from(tail)]

/** @type {Readonly<Record<string, Answer>>} */
export const answers = {
  tokens: { pieces: () => tokens },
  frames: { pieces: () => frames },
  long: { pieces: long },
  'line-2': { pieces: () => line(LINES['line-2']) },
  'line-8': { pieces: () => line(LINES['line-8']) },
  'endless-line': { pieces: () => endless('data: {"choices":[{"delta":{"content":"', 'x'.repeat(WRITE)) },
  'endless-json': {
    type: 'application/json',
    pieces: () => endless('{"choices":[{"message":{"content":"', 'x'.repeat(WRITE)),
  },
}

function* long() {
  const delta = Buffer.from(event({ content: 'x'.repeat(LONG.delta) }))
  const many = Buffer.concat(Array.from({ length: 64 }, () => delta))
  const events = LONG.length / LONG.delta
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
