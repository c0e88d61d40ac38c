/**
 * Answers a model might have given, and streams that say them: plainly, in any of the ways servers are known for, or
 * broken. What a stream of the first two kinds must come to is known; one of the last may come to much, but not to harm.
 */
import fc from 'fast-check'

export interface FuzzCall {
  readonly id: string
  readonly name: string
  readonly arguments: string
}

/** What the model meant. */
export interface FuzzAnswer {
  readonly reasoning: string
  readonly text: string
  readonly calls: readonly FuzzCall[]
  readonly finish: 'stop' | 'tool_calls' | 'length' | 'content_filter'
  readonly usage: boolean
}

const words = fc.string({ unit: 'grapheme', maxLength: 12 }).map((text) => `${text}${text.trim() === '' ? '' : '北😀'}`)
const args = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.oneof(fc.integer(), words, fc.boolean()), { maxKeys: 3 })

export const answers: fc.Arbitrary<FuzzAnswer> = fc.record({
  reasoning: words,
  text: words,
  calls: fc
    .array(fc.record({ name: fc.constantFrom('f', 'g'), arguments: args.map((value) => JSON.stringify(value)) }), {
      maxLength: 3,
    })
    .map((calls) => calls.map((call, i) => ({ id: `call-${i}`, ...call }))),
  finish: fc.constantFrom('stop', 'stop', 'tool_calls', 'tool_calls', 'length', 'content_filter'),
  usage: fc.boolean(),
})

/** How a server says it; each is one that a reader must understand. */
export interface FuzzManner {
  readonly eol: '\n' | '\r\n' | '\r'
  readonly bom: boolean
  readonly space: '' | ' '
  readonly overLines: boolean
  readonly index: 'all' | 'first' | 'none'
  readonly ids: 'first' | 'every'
  readonly names: 'first' | 'empty' | 'null' | 'every'
  readonly reasoningKey: 'reasoning_content' | 'reasoning'
  readonly pieces: number
  /** Pieces of all calls by turns, where each says whose it is. */
  readonly interleaved: boolean
  /** Arguments as an object, in one piece. */
  readonly objects: boolean
  /** The event of this number lacks its blank line, if the next is one as well. */
  readonly glued: number
  readonly second: 'none' | 'same' | 'stop'
  readonly done: 'whole' | 'missing' | 'cut'
  /** Put before the event of this number, modulo their count. */
  readonly noise: readonly { readonly at: number; readonly text: string }[]
}

const NOISE = [
  ': keep-alive\n\n',
  ':\n',
  'data: null\n\n',
  'data: []\n\n',
  'data: 0\n\n',
  'data:\n\n',
  'data: : waiting\n\n',
  'event: ping\n\n',
  'id: 7\n',
  'retry: 5\n\n',
  'garbage\n',
  'what: ever\n\n',
  '\n\n',
  'data: {"choices":[]}\n\n',
  'data: {"choices":null}\n\n',
  'data: {"object":"chat.completion.chunk"}\n\n',
  'data: {"choices":[{"delta":{}}]}\n\n',
  'data: {"choices":[{"delta":{"content":""},"finish_reason":null}]}\n\n',
  'data: {"choices":[{"index":1,"delta":{"content":"another choice"}}]}\n\n',
]

export const manners: fc.Arbitrary<FuzzManner> = fc.record({
  eol: fc.constantFrom('\n', '\r\n', '\r'),
  bom: fc.boolean(),
  space: fc.constantFrom('', ' '),
  overLines: fc.boolean(),
  index: fc.constantFrom('all', 'first', 'none'),
  ids: fc.constantFrom('first', 'every'),
  names: fc.constantFrom('first', 'empty', 'null', 'every'),
  reasoningKey: fc.constantFrom('reasoning_content', 'reasoning'),
  pieces: fc.integer({ min: 1, max: 4 }),
  interleaved: fc.boolean(),
  objects: fc.boolean(),
  glued: fc.nat(20),
  second: fc.constantFrom('none', 'same', 'stop'),
  done: fc.constantFrom('whole', 'missing', 'cut'),
  noise: fc.array(fc.record({ at: fc.nat(40), text: fc.constantFrom(...NOISE) }), { maxLength: 4 }),
})

/** One event of a stream; `closes` if it says why the model stopped. */
export interface FuzzEvent {
  readonly text: string
  readonly closes: boolean
}

/** A fragment as the wire has it, before it is put into a payload. */
export type Fragment = Readonly<Record<string, unknown>>

const event = (payload: unknown, manner: FuzzManner, closes = false): FuzzEvent => {
  const { space } = manner
  const lines = JSON.stringify(payload, null, isOverLines(manner) ? 1 : 0).split('\n')
  return { text: `${lines.map((line) => `data:${space}${line}\n`).join('')}\n`, closes }
}

/** An object keeps its own text, so that is written as usual. */
const isOverLines = ({ overLines, objects }: FuzzManner): boolean => overLines && !objects

const deltaOf = (delta: unknown, manner: FuzzManner): FuzzEvent => event({ choices: [{ delta }] }, manner)

/** The fragments of all calls. */
export function fragmentsOf({ calls }: FuzzAnswer, manner: FuzzManner): readonly Fragment[] {
  const lists = calls.map((call, index) => fragmentsOfCall(call, index, manner))
  if (!manner.interleaved || (manner.index !== 'all' && manner.ids !== 'every')) return lists.flat()
  const longest = Math.max(0, ...lists.map(({ length }) => length))
  return Array.from({ length: longest }, (_, i) => lists.flatMap((list) => list.slice(i, i + 1))).flat()
}

function fragmentsOfCall(call: FuzzCall, index: number, manner: FuzzManner): readonly Fragment[] {
  const pieces = manner.objects ? [JSON.parse(call.arguments)] : cutInto(call.arguments, manner.pieces)
  return pieces.map((piece, i): Fragment => {
    const named = i === 0 || manner.names === 'every' ? { name: call.name } : LATER_NAMES[manner.names]
    return {
      ...((manner.index === 'all' || (manner.index === 'first' && i === 0)) && { index }),
      ...((manner.ids === 'every' || i === 0) && { id: call.id }),
      function: { ...named, arguments: piece },
    }
  })
}

const LATER_NAMES = { first: {}, empty: { name: '' }, null: { name: null }, every: {} }

/** The events of a stream that says `answer`, its calls by these fragments. */
export function eventsOf(answer: FuzzAnswer, manner: FuzzManner, fragments: readonly Fragment[]): readonly FuzzEvent[] {
  const { reasoning, text, finish, usage } = answer
  const close = (reason: string, more: object = {}) =>
    event({ choices: [{ delta: {}, finish_reason: reason }], ...more }, manner, true)
  const counted = { usage: { prompt_tokens: 3, completion_tokens: 2 } }
  const second =
    manner.second === 'none' ? [] : [close(manner.second === 'same' ? finish : 'stop', usage ? counted : {})]
  const events = [
    ...cutInto(reasoning, 2).map((piece) => deltaOf({ [manner.reasoningKey]: piece }, manner)),
    ...cutInto(text, 3).map((piece) => deltaOf({ content: piece }, manner)),
    ...fragments.map((fragment) => deltaOf({ tool_calls: [fragment] }, manner)),
    close(finish),
    ...second,
    ...(usage && second.length === 0 ? [event({ choices: [], ...counted }, manner)] : []),
  ]
  const ends = ENDS[manner.done].map((end) => ({ text: end, closes: false }))
  return withNoise([...glued(events, manner), ...ends], manner)
}

/** Where a blank line is missing, two events are one, and it closes if either does. */
function glued(events: readonly FuzzEvent[], manner: FuzzManner): readonly FuzzEvent[] {
  const at = manner.glued % (events.length * 3)
  const [one, next] = events.slice(at, at + 2)
  if (one === undefined || next === undefined || isOverLines(manner)) return events
  return events.toSpliced(at, 2, { text: one.text.slice(0, -1) + next.text, closes: one.closes || next.closes })
}

const ENDS = { whole: ['data: [DONE]\n\n'], missing: [], cut: ['data: [DONE]'] }

const withNoise = (events: readonly FuzzEvent[], { noise }: FuzzManner): readonly FuzzEvent[] =>
  events.flatMap((one, i) => [
    ...noise.filter(({ at }) => at % events.length === i).map(({ text }) => ({ text, closes: false })),
    one,
  ])

/** The bytes of a stream. */
export function bytesOf(events: readonly FuzzEvent[], { eol, bom }: FuzzManner): Uint8Array {
  const text = events.map((one) => one.text).join('')
  return Buffer.from(`${bom ? '\ufeff' : ''}${text.replaceAll('\n', eol)}`, 'utf8')
}

/** How many bytes there are up to the first event that says why the model stopped, that event excluded. */
export function bytesBeforeFinish(events: readonly FuzzEvent[], manner: FuzzManner): number {
  const at = events.findIndex(({ closes }) => closes)
  return bytesOf(events.slice(0, at), manner).length
}

/** In about equal pieces, code points whole; at least one, and all of them not empty but the one of an empty text. */
function cutInto(text: string, pieces: number): readonly string[] {
  const points = [...text]
  const size = Math.max(1, Math.ceil(points.length / pieces))
  const count = Math.max(1, Math.ceil(points.length / size))
  return Array.from({ length: count }, (_, i) => points.slice(i * size, (i + 1) * size).join(''))
}

/** Changes after which a stream no longer says what was meant. */
export type Damage =
  | { readonly kind: 'swap' | 'repeat' | 'drop'; readonly at: number; readonly other: number }
  | { readonly kind: 'without'; readonly at: number; readonly field: 'index' | 'id' | 'name' }
  | { readonly kind: 'garbage'; readonly at: number; readonly text: string }
  | { readonly kind: 'error'; readonly at: number; readonly text: string }

const ERRORS = [
  'data: {"error":{"message":"overloaded","code":"server_error"}}\n\n',
  'data: {"error":"BOOM"}\n\n',
  'event: error\ndata: gone\n\n',
  'data: {"object":"error","message":"no"}\n\n',
]

export const damages: fc.Arbitrary<readonly Damage[]> = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constantFrom('swap', 'repeat', 'drop'), at: fc.nat(30), other: fc.nat(30) }),
    fc.record({ kind: fc.constant('without'), at: fc.nat(30), field: fc.constantFrom('index', 'id', 'name') }),
    fc.record({
      kind: fc.constant('garbage'),
      at: fc.nat(30),
      text: fc.oneof(
        fc.string({ maxLength: 20 }).map((text) => `${text}\n\n`),
        fc.string({ maxLength: 20 }).map((text) => `data: ${text}\n\n`),
        fc.json({ maxDepth: 3 }).map((text) => `data: ${text}\n\n`),
        fc.json({ maxDepth: 2 }).map((text) => `data: {"choices":[{"delta":${text},"finish_reason":${text}}]}\n\n`),
        fc.json({ maxDepth: 2 }).map((text) => `data: {"choices":[{"delta":{"tool_calls":[${text}]}}]}\n\n`),
        fc.json({ maxDepth: 2 }).map((text) => `data: {"choices":${text},"usage":${text}}\n\n`),
      ),
    }),
    fc.record({ kind: fc.constant('error'), at: fc.nat(30), text: fc.constantFrom(...ERRORS) }),
  ),
  { minLength: 1, maxLength: 4 },
)

/** The fragments after the changes that concern them. */
export function damagedFragments(fragments: readonly Fragment[], done: readonly Damage[]): readonly Fragment[] {
  return done.reduce<readonly Fragment[]>((now, damage) => (now.length === 0 ? now : damaged(now, damage)), fragments)
}

function damaged(now: readonly Fragment[], damage: Damage): readonly Fragment[] {
  const at = damage.at % now.length
  const one = now[at] ?? {}
  switch (damage.kind) {
    case 'swap': {
      const other = damage.other % now.length
      return now.map((same, i) => (i === at ? (now[other] ?? same) : i === other ? one : same))
    }
    case 'repeat':
      return now.toSpliced(damage.other % (now.length + 1), 0, one)
    case 'drop':
      return now.toSpliced(at, 1)
    case 'without':
      return now.with(at, without(one, damage.field))
    default:
      return now
  }
}

function without(fragment: Fragment, field: 'index' | 'id' | 'name'): Fragment {
  if (field !== 'name') return Object.fromEntries(Object.entries(fragment).filter(([key]) => key !== field))
  const named = fragment.function as Fragment
  return { ...fragment, function: Object.fromEntries(Object.entries(named).filter(([key]) => key !== 'name')) }
}

/** The events after the changes that put something between them. */
export function damagedEvents(events: readonly FuzzEvent[], done: readonly Damage[]): readonly FuzzEvent[] {
  return done.reduce<readonly FuzzEvent[]>(
    (now, damage) =>
      damage.kind === 'garbage' || damage.kind === 'error'
        ? now.toSpliced(damage.at % (now.length + 1), 0, { text: damage.text, closes: false })
        : now,
    events,
  )
}
