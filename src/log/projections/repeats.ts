/** How often the open turn has made the same call: the same tool with the same arguments, spaces and key order aside. */
import { argumentsDigest } from '../digest.ts'
import type { SessionEvent } from '../events.ts'
import type { ToolCallBlock } from '../messages.ts'

export interface Repeats {
  place(event: SessionEvent): void
  /** How often the turn has made this call so far, including what was scheduled. */
  count(name: string, rawArguments: string): number
}

export function createRepeats(): Repeats {
  let counts = new Map<string, number>()
  const key = (name: string, raw: string): string => `${name} ${argumentsDigest(raw)}`
  return {
    place(event) {
      if (event.type === 'turn/start') counts = new Map()
      if (event.type !== 'assistant/message' || event.data.calls.length === 0) return
      for (const block of event.data.message.content) {
        if (block.type !== 'tool-call') continue
        const { name, arguments: raw } = block as ToolCallBlock
        counts.set(key(name, raw), (counts.get(key(name, raw)) ?? 0) + 1)
      }
    },
    count: (name, raw) => counts.get(key(name, raw)) ?? 0,
  }
}
