/**
 * Payloads of a chat-completions stream to chunks. Deltas go out as they come; blocks end, in the order they opened,
 * only when the answer does. The first finish reason closes the content, later ones can only make the end worse.
 */
import type { FinishReason, LlmFailure, StreamChunk, TokenUsage } from '../../../log/messages.ts'
import { argumentsOf, type CallSlot, createCallSlots, nameOf } from './call-slots.ts'
import { thoughtIn, wordsIn } from './content-parts.ts'
import { note } from './diagnostics.ts'
import type { Reading } from './dialect.ts'
import { type Meaning, meaningOf, stoppedFor } from './finish-word.ts'
import { replayStateOf } from './reasoning-details.ts'
import { usageOf } from './usage.ts'
import { isObject, listIn, objectIn, textIn, type WireObject } from './wire-json.ts'

/** One answer on its way. */
export interface Translation {
  /** The chunks of one payload that is no error. */
  take(payload: WireObject): readonly StreamChunk[]
  /** True once the model has said why it stopped. */
  readonly finished: boolean
  /** Ends the blocks, then usage if known, then the finish. */
  end(): readonly StreamChunk[]
  /** Usage if known, then the failing finish; blocks stay open. */
  fail(failure: LlmFailure): readonly StreamChunk[]
}

type Words = { readonly kind: 'text' | 'reasoning'; readonly index: number; readonly parts: string[] }
type Block = Words | (CallSlot & { readonly kind: 'tool-call' })

/** A translation that has seen nothing yet. */
export function createTranslation({ reasoningKeys = REASONING, finish, finishWords = {} }: Reading = {}): Translation {
  const blocks: Block[] = []
  const words = new Map<string, Words>()
  const slots = createCallSlots(() => {
    const slot = { kind: 'tool-call' as const, index: blocks.length, id: '', name: '', parts: [] }
    blocks.push(slot)
    return slot
  })
  const details: unknown[] = []
  let usage: TokenUsage | undefined
  let reason: Meaning | undefined

  const say = (kind: Words['kind'], piece: string): readonly StreamChunk[] => {
    if (piece === '') return []
    const open = words.get(kind)
    const block = open ?? { kind, index: blocks.length, parts: [] }
    if (open === undefined) {
      words.set(kind, block)
      blocks.push(block)
    }
    block.parts.push(piece)
    const delta: StreamChunk = { type: `${kind}-delta`, index: block.index, text: piece }
    return open === undefined ? [started(block), delta] : [delta]
  }
  const ask = (fragments: readonly unknown[]): readonly StreamChunk[] =>
    fragments.filter(isObject).flatMap((fragment, place, { length }) => {
      const before = blocks.length
      const slot = slots.slotOf(fragment, place, length)
      const delta = fill(slot, fragment)
      return blocks.length > before ? [startedCall(slot), delta] : [delta]
    })
  const takeChoice = (choice: WireObject): readonly StreamChunk[] => {
    const delta = isObject(choice.delta) ? choice.delta : objectIn(choice.message)
    const open = reason === undefined || finish === 'last'
    if (open) details.push(...listIn(delta.reasoning_details))
    const said = open ? [...sayAll(delta, reasoningKeys, say), ...ask(listIn(delta.tool_calls))] : late(delta)
    reason = worse(reason, meaningOf(textIn(choice.finish_reason), finishWords))
    return said
  }
  const spent = (): readonly StreamChunk[] => (usage === undefined ? [] : [{ type: 'usage', usage }])

  return {
    take(payload) {
      if (isObject(payload.usage)) usage = usageOf(payload.usage) ?? unreadable(payload.usage, usage)
      return listIn(payload.choices).filter(isFirstChoice).flatMap(takeChoice)
    },
    get finished() {
      return reason !== undefined
    },
    end: () => [
      ...blocks.map(ended),
      ...spent(),
      { type: 'finish', reason: finishReason(reason ?? STOP, blocks), ...replayStateOf(details) },
    ],
    fail: (failure) => [...spent(), { type: 'finish', reason: { kind: 'error', failure } }],
  }
}

type Say = (kind: Words['kind'], piece: string) => readonly StreamChunk[]

const REASONING: readonly string[] = ['reasoning_content', 'reasoning']

/** Where reasoning comes under several names, they say the same. A refusal is what the model answered. */
const sayAll = (delta: WireObject, reasoningKeys: readonly string[], say: Say): readonly StreamChunk[] => [
  ...say('reasoning', firstText(delta, reasoningKeys) || thoughtIn(delta.content)),
  ...say('text', wordsIn(delta.content) || textIn(delta.refusal)),
]

function firstText(delta: WireObject, keys: readonly string[]): string {
  for (const key of keys) if (textIn(delta[key]) !== '') return textIn(delta[key])
  return ''
}

function fill(slot: CallSlot, fragment: WireObject): StreamChunk {
  slot.id = textIn(fragment.id) || slot.id
  slot.name = nameOf(fragment) || slot.name
  const piece = argumentsOf(fragment)
  slot.parts.push(piece)
  const name = slot.name === '' ? {} : { name: slot.name }
  return { type: 'tool-call-delta', index: slot.index, id: slot.id, ...name, argumentsDelta: piece }
}

const started = (block: Block): StreamChunk => ({ type: 'block-start', index: block.index, blockType: block.kind })
const startedCall = ({ index }: CallSlot): StreamChunk => ({ type: 'block-start', index, blockType: 'tool-call' })

function ended(block: Block): StreamChunk {
  const { index } = block
  const joined = block.parts.join('')
  if (block.kind !== 'tool-call') return { type: 'block-end', index, block: { type: block.kind, text: joined } }
  const { id, name } = block
  return { type: 'block-end', index, block: { type: 'tool-call', id, name, arguments: joined } }
}

/** Only one answer was asked for; servers that number choices call it 0. */
const isFirstChoice = (choice: unknown): choice is WireObject =>
  isObject(choice) && (typeof choice.index !== 'number' || choice.index === 0)

/** After a finish some servers send the whole content again. */
function late(delta: WireObject): readonly StreamChunk[] {
  if (wordsIn(delta.content) !== '' || listIn(delta.tool_calls).length > 0) note('late-content', JSON.stringify(delta))
  return []
}

function unreadable(wire: WireObject, before: TokenUsage | undefined): TokenUsage | undefined {
  note('usage-unreadable', JSON.stringify(wire))
  return before
}

/** A server that says nothing has stopped. */
const STOP: Meaning = { kind: 'stop', word: 'stop' }

/** Filtered or failed beats cut off, cut off beats complete; of equals the last one stands. */
function worse(before: Meaning | undefined, now: Meaning | undefined): Meaning | undefined {
  if (now === undefined) return before
  return before === undefined || rank(now) >= rank(before) ? now : before
}
const rank = ({ kind }: Meaning): number => (kind === 'stop' || kind === 'tool_calls' ? 0 : kind === 'length' ? 1 : 2)

function finishReason(reason: Meaning, blocks: readonly Block[]): FinishReason {
  const asks = blocks.some((block) => block.kind === 'tool-call')
  switch (reason.kind) {
    case 'stop':
      return asks || hasText(blocks) ? { kind: 'stop' } : { kind: 'error', failure: EMPTY }
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

function hasText(blocks: readonly Block[]): boolean {
  const said = blocks.map((block) => (block.kind === 'text' ? block.parts.join('') : '')).join('')
  if (CALL_MARKUP.test(said)) note('suspicious-text', said)
  return said.trim() !== ''
}

/** Call markup that a server's parser missed. It stays text: nothing is run because of what text says. */
const CALL_MARKUP = /<\|?(?:tool_calls?|function_call)\b|<｜tool▁calls?▁begin｜>/u

const EMPTY: LlmFailure = Object.freeze({
  message: 'The model stopped without any text or tool call',
  code: 'EMPTY_RESPONSE',
})
