/** The blocks of one answer, numbered as they open, each with what the provider gave beside it. */
import type { Json } from '../../../log/json.ts'
import type { ContentBlock, StreamChunk } from '../../../log/messages.ts'
import { checkCount } from '../chat-completions/bounds.ts'
import { isObject } from '../chat-completions/wire-json.ts'
import { jsonOf } from './json.ts'

/** One block in the making. */
export interface Slot {
  readonly index: number
  readonly type: string
  /** What the provider gave last; each says it whole. */
  metadata: unknown
}

export interface Blocks {
  /**
   * Opens the next block.
   * @throws LlmError MALFORMED_RESPONSE for more than an answer may have.
   */
  open(type: string): Slot
  readonly all: readonly Slot[]
  /** What was given beside each, null for nothing. */
  metadata(): readonly (Json | null)[]
}

/** No blocks yet. */
export function createBlocks(): Blocks {
  const all: Slot[] = []
  return {
    open(type) {
      checkCount(all.length)
      const slot: Slot = { index: all.length, type, metadata: undefined }
      all.push(slot)
      return slot
    },
    all,
    metadata: () => all.map(({ metadata }) => jsonOf(metadata) ?? null),
  }
}

/** Metadata of a part that says anything. */
export const metadataIn = (value: unknown): unknown =>
  isObject(value) && Object.keys(value).length > 0 ? value : undefined

export const started = ({ index, type }: Slot): StreamChunk => ({ type: 'block-start', index, blockType: type })
export const ended = ({ index }: Slot, block: ContentBlock): StreamChunk => ({ type: 'block-end', index, block })
