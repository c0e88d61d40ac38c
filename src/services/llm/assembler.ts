/**
 * Chunks to blocks. The blocks stand in the order in which their indexes first appeared; a block's end is the last
 * word on its content. Reading changes nothing, so the same chunks give the same message again at any time.
 */

import { utf8Bytes } from '../../log/json.ts'
import type {
  ContentBlock,
  FinishReason,
  LlmFailure,
  ReasoningBlock,
  ReplayState,
  StreamChunk,
  TextBlock,
  TokenUsage,
  ToolCallBlock,
} from '../../log/messages.ts'
import { LlmError } from '../errors.ts'
import { failureOf, loggable } from './failure.ts'

/** More calls than this in one answer make it a failed attempt. */
export const MAX_CALLS = 128

/** Takes one attempt's chunks, in order. */
export interface Assembler {
  /** O(1) for a delta. */
  push(chunk: StreamChunk): void
  /**
   * The answer so far; a block still open is made from its deltas, and an answer cut by max-tokens has no calls. A
   * call that came without an id has the id `''`.
   * @throws LlmError MALFORMED_RESPONSE for an open block of a type that no delta could have filled.
   */
  blocks(): readonly ContentBlock[]
  /** Text and reasoning that a reader can see, open or closed; nothing else. */
  visible(): readonly (TextBlock | ReasoningBlock)[]
  /** The last one reported. */
  readonly usage: TokenUsage | undefined
  /** The last one; undefined for a stream that ended without saying why. */
  readonly finish: FinishReason | undefined
  /** In step with `blocks()`; undefined where its entries do not match them one to one. */
  readonly replayState: ReplayState | undefined
  /** Bytes of JSON that the answer would have, about: what it keeps in memory and what it would take in the log. */
  readonly bytes: number
}

/** Where call ids come from when the provider's own will not do. */
export interface CallIds {
  /** Gives an id that is new in the session. */
  newCallId(): string
  /** Whether the session already has a call of that id. */
  isUsed(id: string): boolean
}

/** What an attempt came to: an answer, or why there is none. `calls` are the tool calls of `content`, in order. */
export type Assembled =
  | {
      readonly kind: 'answered'
      readonly content: readonly ContentBlock[]
      readonly calls: readonly ToolCallBlock[]
      readonly finish: FinishReason
      readonly usage?: TokenUsage
      readonly replayState?: ReplayState
    }
  | { readonly kind: 'failed'; readonly failure: LlmFailure; readonly usage?: TokenUsage }

/** An assembler that has seen nothing yet. */
export function createAssembler(): Assembler {
  const slots = new Map<number, Slot>()
  let usage: TokenUsage | undefined
  let finish: FinishReason | undefined
  let replayState: ReplayState | undefined
  let reported = 0
  let placed = 0
  const kept = () => [...slots.values()].filter((slot) => finish?.kind !== 'max-tokens' || typeOf(slot) !== 'tool-call')
  return {
    push(chunk) {
      if (chunk.type === 'usage') {
        usage = chunk.usage
        reported = jsonBytes(usage)
      } else if (chunk.type === 'finish') {
        finish = chunk.reason
        replayState = chunk.replayState
        placed += jsonBytes(chunk)
      } else placed += place(slots, chunk)
    },
    blocks: () => kept().map(blockOf),
    visible: () => [...slots.values()].map(visibleBlock).filter((block) => block !== undefined),
    get usage() {
      return usage
    },
    get finish() {
      return finish
    },
    get replayState() {
      return replayState && inStep(replayState, [...slots.values()], kept())
    },
    get bytes() {
      return reported + placed
    },
  }
}

/**
 * An attempt's outcome. Ids that are missing, too long, used before in the session or used twice in this answer are minted
 * anew. A stream without a finish failed with STREAM_CLOSED; whether it was cancelled is for the caller to know.
 */
export function assemble(source: Assembler | Iterable<StreamChunk>, ids: CallIds): Assembled {
  const assembler = 'blocks' in source ? source : assemblerOf(source)
  const { finish, usage } = assembler
  const spent = usage === undefined ? {} : { usage }
  if (finish === undefined) return { kind: 'failed', failure: STREAM_CLOSED, ...spent }
  if (finish.kind === 'error' || finish.kind === 'aborted') {
    return { kind: 'failed', failure: loggable(finish.failure), ...spent }
  }
  try {
    const content = mintIds(assembler.blocks(), ids)
    const calls = content.filter(isToolCall)
    if (calls.length > MAX_CALLS) throw malformed(`The answer asks for ${calls.length} tools, more than ${MAX_CALLS}`)
    const { replayState } = assembler
    return { kind: 'answered', content, calls, finish, ...spent, ...(replayState && { replayState }) }
  } catch (thrown) {
    return { kind: 'failed', failure: failureOf(thrown), ...spent }
  }
}

/** What stays of an answer that was cut off: text and reasoning a reader can see, in order. Empty if there is none. */
export function interruptedPrefix(assembler: Assembler): readonly (TextBlock | ReasoningBlock)[] {
  return assembler.visible()
}

/** An assembler that has taken `chunks`. */
export function assemblerOf(chunks: Iterable<StreamChunk>): Assembler {
  const assembler = createAssembler()
  for (const chunk of chunks) assembler.push(chunk)
  return assembler
}

/** True for a block that asks for a tool. */
export const isToolCall = (block: ContentBlock): block is ToolCallBlock => block.type === 'tool-call'

type BlockChunk = Exclude<StreamChunk, { type: 'usage' | 'finish' }>

/** One block in the making. Parts are joined when read: a long answer costs its length once. */
interface Slot {
  readonly type: string
  readonly parts: string[]
  id: string
  name: string
  closed: ContentBlock | undefined
  /** Of JSON. */
  bytes: number
}

const jsonBytes = (value: unknown): number => utf8Bytes(JSON.stringify(value))

/** Gives the bytes that the answer grew by. */
function place(slots: Map<number, Slot>, chunk: BlockChunk): number {
  const slot = slots.get(chunk.index) ?? openSlot(slots, chunk)
  const before = slot.bytes
  if (slot.closed === undefined) fill(slot, chunk)
  return slot.bytes - before
}

function fill(slot: Slot, chunk: BlockChunk): void {
  switch (chunk.type) {
    case 'block-start':
      return
    case 'block-end':
      slot.closed = chunk.block
      slot.bytes = jsonBytes(chunk.block)
      return
    case 'tool-call-delta':
      if (slot.type !== 'tool-call') return
      if (chunk.id) slot.id = chunk.id
      if (chunk.name) {
        slot.bytes += chunk.name.length - slot.name.length
        slot.name = chunk.name
      }
      add(slot, chunk.argumentsDelta)
      return
    default:
      if (`${slot.type}-delta` === chunk.type) add(slot, chunk.text)
  }
}

function add(slot: Slot, part: string): void {
  slot.parts.push(part)
  // By its characters: the text of each is not made for it, and at the end the whole answer is measured.
  slot.bytes += part.length < 256 ? part.length + 2 : jsonBytes(part)
}

function openSlot(slots: Map<number, Slot>, chunk: BlockChunk): Slot {
  const slot: Slot = { type: typeOpenedBy(chunk), parts: [], id: '', name: '', closed: undefined, bytes: 0 }
  slots.set(chunk.index, slot)
  return slot
}

function typeOpenedBy(chunk: BlockChunk): string {
  if (chunk.type === 'block-start') return chunk.blockType
  if (chunk.type === 'block-end') return chunk.block.type
  return chunk.type.slice(0, -'-delta'.length)
}

const typeOf = (slot: Slot): string => slot.closed?.type ?? slot.type

function blockOf(slot: Slot): ContentBlock {
  if (slot.closed !== undefined) return slot.closed
  const joined = slot.parts.join('')
  switch (slot.type) {
    case 'text':
    case 'reasoning':
      return { type: slot.type, text: joined }
    case 'tool-call':
      return { type: 'tool-call', id: slot.id, name: slot.name, arguments: joined }
    default:
      throw malformed(`The stream ended inside a block of type "${slot.type}"`)
  }
}

function visibleBlock(slot: Slot): TextBlock | ReasoningBlock | undefined {
  const type = typeOf(slot)
  if (type !== 'text' && type !== 'reasoning') return undefined
  const block = blockOf(slot)
  return isWords(block) && block.text.trim() !== '' ? block : undefined
}

const isWords = (block: ContentBlock): block is TextBlock | ReasoningBlock =>
  block.type === 'text' || block.type === 'reasoning'

function inStep(state: ReplayState, all: readonly Slot[], kept: readonly Slot[]): ReplayState | undefined {
  if (state.blocks === undefined) return state
  if (state.blocks.length !== all.length) return undefined
  if (kept.length === all.length) return state
  return { ...state, blocks: state.blocks.filter((_, i) => kept.includes(all[i] as Slot)) }
}

function mintIds(blocks: readonly ContentBlock[], ids: CallIds): readonly ContentBlock[] {
  const here = new Set<string>()
  return blocks.map((block) => {
    if (!isToolCall(block)) return block
    const call =
      unfit(block.id) || here.has(block.id) || ids.isUsed(block.id) ? { ...block, id: ids.newCallId() } : block
    here.add(call.id)
    return call
  })
}

/** Every event of a call bears its id. */
const MAX_ID = 256

const unfit = (id: string): boolean => id === '' || id.length > MAX_ID

const malformed = (message: string): LlmError => new LlmError({ message, code: 'MALFORMED_RESPONSE' })

const STREAM_CLOSED: LlmFailure = Object.freeze({
  message: 'The stream ended before the model said it was done',
  code: 'STREAM_CLOSED',
})
