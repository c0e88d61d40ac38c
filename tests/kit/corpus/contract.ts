/** What every adapter promises of every stream, whatever a server sent. */
import type { StreamChunk } from '../../../src/log/messages.ts'

const DELTAS: { readonly [type: string]: string } = {
  'text-delta': 'text',
  'reasoning-delta': 'reasoning',
  'tool-call-delta': 'tool-call',
}

/** The first promise that these chunks of one whole answer break; undefined if they keep all. */
export function brokenPromise(chunks: readonly StreamChunk[]): string | undefined {
  const open = new Map<number, string>()
  const closed = new Set<number>()
  let [usages, finishes] = [0, 0]
  for (const [i, chunk] of chunks.entries()) {
    const at = `chunk ${i}, ${chunk.type}`
    if (finishes > 0) return `${at}: it comes after the finish`
    switch (chunk.type) {
      case 'usage':
        if (usages++ > 0) return `${at}: usage a second time`
        break
      case 'finish':
        finishes++
        if (open.size > 0 && chunk.reason.kind !== 'error') return `${at}: ${chunk.reason.kind} with a block open`
        break
      case 'block-start':
        if (open.has(chunk.index) || closed.has(chunk.index)) return `${at}: block ${chunk.index} is opened again`
        open.set(chunk.index, chunk.blockType)
        break
      case 'block-end':
        if (open.get(chunk.index) !== chunk.block.type) return `${at}: block ${chunk.index} is not such a block`
        open.delete(chunk.index)
        closed.add(chunk.index)
        break
      default:
        if (open.get(chunk.index) !== DELTAS[chunk.type]) return `${at}: block ${chunk.index} is not such a block`
    }
  }
  return finishes === 1 ? undefined : `${finishes} finishes`
}
