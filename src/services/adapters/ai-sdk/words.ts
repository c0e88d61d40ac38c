/**
 * Text and reasoning. Several may be under way at once, each under an id that is used again later. A block begins when
 * there is something to say: what stays empty, with nothing beside it, is no block.
 */
import type { StreamChunk } from '../../../log/messages.ts'
import { checkCount } from '../chat-completions/bounds.ts'
import { createPieces, type Pieces } from '../chat-completions/pieces.ts'
import { textIn, type WireObject } from '../chat-completions/wire-json.ts'
import { type Blocks, ended, metadataIn, type Slot, started } from './blocks.ts'

export type Kind = 'text' | 'reasoning'

export interface Words {
  /** An id that is still open begins anew. */
  start(kind: Kind, part: WireObject): readonly StreamChunk[]
  delta(kind: Kind, part: WireObject): readonly StreamChunk[]
  end(kind: Kind, part: WireObject): readonly StreamChunk[]
  /** Ends what its provider left open. */
  endAll(): readonly StreamChunk[]
  /** True once there is text that a reader can see. */
  readonly visible: boolean
}

interface Run {
  readonly kind: Kind
  readonly said: Pieces
  slot: Slot | undefined
}

/** None yet. */
export function createWords({ open }: Blocks): Words {
  const runs = new Map<string, Run>()
  let visible = false

  const runOf = (kind: Kind, id: string): Run => {
    const key = keyOf(kind, id)
    const known = runs.get(key)
    if (known !== undefined) return known
    checkCount(runs.size)
    const run: Run = { kind, said: createPieces(), slot: undefined }
    runs.set(key, run)
    return run
  }
  const take = (run: Run, text: string, metadata: unknown): readonly StreamChunk[] => {
    if (text === '' && metadata === undefined) return []
    const begins = run.slot === undefined
    const slot = run.slot ?? open(run.kind)
    run.slot = slot
    if (metadata !== undefined) slot.metadata = metadata
    const begun = begins ? [started(slot)] : []
    if (text === '') return begun
    run.said.add(text)
    visible ||= run.kind === 'text' && text.trim() !== ''
    return [...begun, { type: `${run.kind}-delta`, index: slot.index, text }]
  }
  const close = (key: string, { kind, said, slot }: Run): readonly StreamChunk[] => {
    runs.delete(key)
    return slot === undefined ? [] : [ended(slot, { type: kind, text: said.text() })]
  }
  const say = (kind: Kind, { id, delta, providerMetadata }: WireObject): readonly StreamChunk[] =>
    take(runOf(kind, textIn(id)), textIn(delta), metadataIn(providerMetadata))

  return {
    start(kind, part) {
      const key = keyOf(kind, textIn(part.id))
      const before = runs.get(key)
      return [...(before === undefined ? [] : close(key, before)), ...say(kind, { ...part, delta: '' })]
    },
    delta: say,
    end(kind, part) {
      const key = keyOf(kind, textIn(part.id))
      const last = say(kind, { ...part, delta: '' })
      return [...last, ...close(key, runOf(kind, textIn(part.id)))]
    },
    endAll: () => [...runs].flatMap(([key, run]) => close(key, run)),
    get visible() {
      return visible
    },
  }
}

const keyOf = (kind: Kind, id: string): string => `${kind} ${id}`
