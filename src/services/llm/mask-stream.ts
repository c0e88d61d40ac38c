/**
 * Masks a model's chunks before they count: each block's deltas as one text, so that a secret is found wherever it was
 * cut. What may yet become one is held, and said at the latest when its block or the stream ends.
 */
import type { ContentBlock, StreamChunk, ToolCallBlock } from '../../log/messages.ts'
import { maskBeside, maskChunk } from '../masking/events.ts'
import type { Mask, TextMask } from '../masking/mask.ts'

export interface StreamMask {
  /** The chunks to log for one that came: none while all of it is held. */
  push(chunk: StreamChunk): readonly StreamChunk[]
  /** What is held, for a stream that was left. */
  release(): readonly StreamChunk[]
  /** How many characters are held. */
  readonly held: number
}

type Delta = Extract<StreamChunk, { readonly type: 'text-delta' | 'reasoning-delta' | 'tool-call-delta' }>

/** The deltas of one type in one block. */
interface Slot {
  readonly type: Delta['type']
  readonly index: number
  readonly text: TextMask
  /** A delta that says what was held. */
  of(text: string): Delta
}

/** `isTool` names the tools there are: their names are no secrets. */
export function createStreamMask(mask: Mask, isTool: (name: string) => boolean): StreamMask {
  let slots: readonly Slot[] = []

  const slotOf = ({ type, index }: Delta): Slot => {
    // A few blocks are open at once, usually one.
    for (const slot of slots) if (slot.index === index && slot.type === type) return slot
    const slot: Slot =
      type === 'tool-call-delta'
        ? { type, index, text: mask.stream('json'), of: (argumentsDelta) => ({ type, index, argumentsDelta }) }
        : { type, index, text: mask.stream(), of: (text) => ({ type, index, text }) }
    slots = [...slots, slot]
    return slot
  }
  const rest = ({ text, of }: Slot): readonly StreamChunk[] => {
    const held = text.end()
    return held === '' ? [] : [of(held)]
  }
  const closeBlock = (index: number): readonly StreamChunk[] => {
    const mine = slots.filter((slot) => slot.index === index)
    slots = slots.filter((slot) => slot.index !== index)
    return mine.flatMap(rest)
  }
  const release = (): readonly StreamChunk[] => {
    const held = slots.flatMap(rest)
    slots = []
    return held
  }
  const words = (chunk: Extract<Delta, { readonly text: string }>): readonly StreamChunk[] => {
    const text = slotOf(chunk).text.push(chunk.text)
    const shown = isPlain(chunk) ? chunk : maskBeside(mask, chunk, 'text')
    if (text === chunk.text) return [shown]
    return text === '' ? [] : [{ ...shown, text }]
  }
  const call = (chunk: Extract<Delta, { readonly type: 'tool-call-delta' }>): readonly StreamChunk[] => {
    const argumentsDelta = slotOf(chunk).text.push(chunk.argumentsDelta)
    const named = withNames(mask, maskBeside(mask, chunk, 'argumentsDelta'), isTool)
    if (argumentsDelta === chunk.argumentsDelta && named === chunk) return [chunk]
    const says = argumentsDelta !== '' || chunk.id !== undefined || chunk.name !== undefined
    return says ? [{ ...named, argumentsDelta }] : []
  }

  return {
    push(chunk) {
      switch (chunk.type) {
        case 'text-delta':
        case 'reasoning-delta':
          return typeof chunk.text === 'string' ? words(chunk) : [chunk]
        case 'tool-call-delta':
          return typeof chunk.argumentsDelta === 'string' ? call(chunk) : [chunk]
        case 'block-end':
          return [...closeBlock(chunk.index), closed(mask, maskChunk(mask, chunk), isTool)]
        case 'finish':
          return [...release(), maskChunk(mask, chunk)]
        default:
          return [maskChunk(mask, chunk)]
      }
    },
    release,
    get held() {
      let held = 0
      for (const { text } of slots) held += text.held
      return held
    },
  }
}

/** A delta has its type, its block and its words; few have more. */
function isPlain(delta: Delta): boolean {
  let keys = 0
  for (const _ in delta) keys += 1
  return keys === 3
}

type Named = { readonly id?: string; readonly name?: string }

/** An id that holds a secret goes, and is minted anew; the name of a tool that is not there is text like any other. */
function withNames<T extends Named>(mask: Mask, said: T, isTool: (name: string) => boolean): T {
  const { id, name } = said
  const secretId = typeof id === 'string' && mask.values(id) !== id
  const secretName = typeof name === 'string' && !isTool(name) && mask.values(name) !== name
  if (!secretId && !secretName) return said
  return { ...said, ...(secretId ? { id: '' } : {}), ...(secretName ? { name: mask.values(name) } : {}) }
}

type BlockEnd = Extract<StreamChunk, { readonly type: 'block-end' }>

const isCall = (block: ContentBlock): block is ToolCallBlock => block?.type === 'tool-call'

const closed = (mask: Mask, chunk: BlockEnd, isTool: (name: string) => boolean): BlockEnd =>
  isCall(chunk.block) ? { ...chunk, block: withNames(mask, chunk.block, isTool) } : chunk
