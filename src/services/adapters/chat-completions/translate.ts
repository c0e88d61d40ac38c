/**
 * Payloads of a chat-completions stream to chunks. Deltas go out as they come; blocks end, in the order they opened,
 * only when the answer does. The first finish reason closes the content, later ones can only make the end worse.
 */
import type { FinishReason, LlmFailure, StreamChunk, TokenUsage } from '../../../log/messages.ts'
import { checkCount, createRoom } from './bounds.ts'
import { createCallArguments } from './call-arguments.ts'
import { argumentsOf, type CallSlot, createCallSlots, nameOf } from './call-slots.ts'
import { thoughtIn, wordsIn } from './content-parts.ts'
import { note } from './diagnostics.ts'
import type { Reading } from './dialect.ts'
import { type Meaning, meaningOf, stoppedFor } from './finish-word.ts'
import { createPieces, type Pieces } from './pieces.ts'
import { replayStateOf } from './reasoning-details.ts'
import { usageOf } from './usage.ts'
import { isObject, jsonText, listIn, objectIn, textIn, type WireObject } from './wire-json.ts'

/** One answer on its way. */
export interface Translation {
  /** The chunks of one payload that is no error. */
  take(payload: WireObject): readonly StreamChunk[]
  /** True if the last payload brought anything of the answer: chunks, a finish reason, usage. */
  readonly progressed: boolean
  /** True once the model has said why it stopped. */
  readonly finished: boolean
  /** True once nothing of the answer itself can come any more: where a finish comes with every piece, once it is counted. */
  readonly closed: boolean
  /** Ends the blocks, then usage if known, then the finish. */
  end(): readonly StreamChunk[]
  /** Usage if known, then the failing finish; blocks stay open. */
  fail(failure: LlmFailure): readonly StreamChunk[]
}

type Words = { readonly kind: 'text' | 'reasoning'; readonly index: number; readonly said: Pieces }
type Block = Words | (CallSlot & { readonly kind: 'tool-call' })

/** A translation that has seen nothing yet. */
export function createTranslation({ reasoningKeys = REASONING, finish, finishWords = {} }: Reading = {}): Translation {
  const blocks: Block[] = []
  const words: { text?: Words; reasoning?: Words } = {}
  const slots = createCallSlots(() => {
    const slot = { kind: 'tool-call' as const, index: blocks.length, id: '', name: '', args: createCallArguments() }
    open(slot)
    return slot
  })
  const details: unknown[] = []
  const room = createRoom()
  let usage: TokenUsage | undefined
  let reason: Meaning | undefined
  let spoken = false
  let progressed = false
  let counted = false

  const open = (block: Block): void => {
    checkCount(blocks.length)
    blocks.push(block)
  }
  const say = (kind: Words['kind'], piece: string, chunks: StreamChunk[]): void => {
    if (piece === '') return
    let block = words[kind]
    if (block === undefined) {
      block = { kind, index: blocks.length, said: createPieces() }
      words[kind] = block
      open(block)
      chunks.push(started(block))
    }
    room.take(piece.length)
    block.said.add(piece)
    if (kind === 'text') spoken ||= piece.trim() !== ''
    chunks.push({ type: kind === 'text' ? 'text-delta' : 'reasoning-delta', index: block.index, text: piece })
  }
  const ask = (fragments: readonly WireObject[], chunks: StreamChunk[]): void => {
    for (const [place, fragment] of fragments.entries()) {
      const before = blocks.length
      const slot = slots.slotOf(fragment, place, fragments.length)
      if (blocks.length > before) chunks.push({ type: 'block-start', index: slot.index, blockType: 'tool-call' })
      const delta = filled(slot, fragment)
      room.take(delta.argumentsDelta.length)
      chunks.push(delta)
    }
  }
  const takeChoice = (choice: WireObject, chunks: StreamChunk[]): void => {
    const delta = isObject(choice.delta) ? choice.delta : objectIn(choice.message)
    if (reason === undefined || finish === 'last') {
      // Where reasoning comes under several names, they say the same. A refusal is what the model answered.
      say('reasoning', firstText(delta, reasoningKeys) || thoughtIn(delta.content), chunks)
      say('text', wordsIn(delta.content) || textIn(delta.refusal), chunks)
      if (delta.tool_calls) ask(listIn(delta.tool_calls).filter(isObject), chunks)
      if (delta.reasoning_details) detail(listIn(delta.reasoning_details))
    } else noteLate(delta)
    const stopped = textIn(choice.finish_reason)
    if (stopped === '') return
    reason = worse(reason, meaningOf(stopped, finishWords))
    progressed = true
  }
  const detail = (more: readonly unknown[]): void => {
    for (const one of more) {
      const text = jsonText(one)
      // Parsed, it takes many times the room of its text.
      room.take(DETAIL_WEIGHT * (text?.length ?? 0))
      // In the place of one that is nested too deep, undefined, which no log holds: then none of them is kept.
      details.push(text === undefined ? undefined : one)
      progressed = true
    }
  }
  const spent = (): readonly StreamChunk[] => (usage === undefined ? [] : [{ type: 'usage', usage }])

  return {
    take(payload) {
      const chunks: StreamChunk[] = []
      progressed = false
      if (isObject(payload.usage)) {
        const before = usage
        usage = usageOf(payload.usage) ?? unreadable(payload.usage, usage)
        // The same counts again are a sign of life, and no more of an answer.
        progressed = JSON.stringify(usage) !== JSON.stringify(before)
        counted = reason !== undefined && listIn(payload.choices).length === 0
      }
      for (const choice of listIn(payload.choices)) if (isFirstChoice(choice)) takeChoice(choice, chunks)
      progressed ||= chunks.length > 0
      return chunks
    },
    get progressed() {
      return progressed
    },
    get finished() {
      return reason !== undefined
    },
    get closed() {
      return reason !== undefined && (finish !== 'last' || counted)
    },
    end() {
      if (words.text !== undefined) noteMarkup(words.text.said)
      const asks = blocks.some(({ kind }) => kind === 'tool-call')
      return [
        ...blocks.map(ended),
        ...spent(),
        { type: 'finish', reason: finishReason(reason ?? STOP, { asks, spoken }), ...replayStateOf(details) },
      ]
    },
    fail: (failure) => [...spent(), { type: 'finish', reason: { kind: 'error', failure } }],
  }
}

const REASONING: readonly string[] = ['reasoning_content', 'reasoning']

function firstText(delta: WireObject, keys: readonly string[]): string {
  for (const key of keys) {
    const text = textIn(delta[key])
    if (text !== '') return text
  }
  return ''
}

const MAX_REPEATED = 256

type CallDelta = Extract<StreamChunk, { type: 'tool-call-delta' }>

function filled(slot: CallSlot, fragment: WireObject): CallDelta {
  slot.id = textIn(fragment.id) || slot.id
  slot.name = nameOf(fragment) || slot.name
  const piece = argumentsOf(fragment)
  slot.args.add(piece)
  const name = slot.name === '' ? {} : { name: slot.name.slice(0, MAX_REPEATED) }
  // Each delta repeats them. An id that long is minted anew anyway, and no tool has such a name.
  const id = slot.id.length > MAX_REPEATED ? '' : slot.id
  return { type: 'tool-call-delta', index: slot.index, id, ...name, argumentsDelta: piece }
}

const started = ({ index, kind }: Block): StreamChunk => ({ type: 'block-start', index, blockType: kind })

function ended(block: Block): StreamChunk {
  const { index, kind } = block
  if (kind !== 'tool-call') return { type: 'block-end', index, block: { type: kind, text: block.said.text() } }
  const { id, name, args } = block
  return { type: 'block-end', index, block: { type: 'tool-call', id, name, arguments: args.text() } }
}

/** Only one answer was asked for; servers that number choices call it 0. */
const isFirstChoice = (choice: unknown): choice is WireObject =>
  isObject(choice) && (typeof choice.index !== 'number' || choice.index === 0)

/** After a finish some servers send the whole content again. */
function noteLate(delta: WireObject): void {
  if (wordsIn(delta.content) !== '' || listIn(delta.tool_calls).length > 0)
    note('late-content', () => jsonText(delta) ?? wordsIn(delta.content))
}

function unreadable(wire: WireObject, before: TokenUsage | undefined): TokenUsage | undefined {
  note('usage-unreadable', () => jsonText(wire) ?? '')
  return before
}

/** Filtered or failed beats cut off, cut off beats complete; of equals the last one stands. */
const worse = (before: Meaning | undefined, now: Meaning): Meaning =>
  before === undefined || rank(now) >= rank(before) ? now : before
const rank = ({ kind }: Meaning): number => (kind === 'stop' || kind === 'tool_calls' ? 0 : kind === 'length' ? 1 : 2)

/** A server that says nothing has stopped. */
const STOP: Meaning = { kind: 'stop', word: 'stop' }

interface Said {
  /** Tools are called. */
  readonly asks: boolean
  /** There is text that is not blank. */
  readonly spoken: boolean
}

function finishReason(reason: Meaning, { asks, spoken }: Said): FinishReason {
  switch (reason.kind) {
    case 'stop':
      return asks || spoken ? { kind: 'stop' } : { kind: 'error', failure: EMPTY }
    case 'tool_calls':
      if (asks) return { kind: 'tool-calls' }
      // Asking again would give the same: the model believes it has called something.
      note('calls-missing')
      return { kind: 'stop' }
    case 'length':
      return { kind: 'max-tokens' }
    default:
      return { kind: 'error', failure: stoppedFor(reason) }
  }
}

/** Call markup that a server's parser missed. It stays text: nothing is run because of what text says. */
function noteMarkup(said: Pieces): void {
  note('suspicious-text', () => {
    const text = said.text()
    return CALL_MARKUP.test(text) ? text : undefined
  })
}
const CALL_MARKUP = /<\|?(?:tool_calls?|function_call)\b|<｜tool▁calls?▁begin｜>/u

const DETAIL_WEIGHT = 16

const EMPTY: LlmFailure = Object.freeze({
  message: 'The model stopped without any text or tool call',
  code: 'EMPTY_RESPONSE',
})
