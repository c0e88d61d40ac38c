/** How often the open turn has made the same call: the same tool with the same arguments, spaces and key order aside. */
import { parseArguments } from '../arguments.ts'
import { textDigest } from '../digest.ts'
import type { SessionEvent } from '../events.ts'
import { canonicalJson } from '../json.ts'
import type { ToolCallBlock } from '../messages.ts'

export interface Repeats {
  place(event: SessionEvent): void
  /** Counts a call that is not in the log yet. */
  add(name: string, rawArguments: string): void
  /** How often the turn has made this call so far, including what was scheduled. */
  count(name: string, rawArguments: string): number
  /** All of it. */
  saved(): SavedRepeats
  /** Takes it back, before any event. */
  restore(saved: SavedRepeats): void
}

/** Counts as a checkpoint holds them, by what calls share. */
export type SavedRepeats = readonly (readonly [key: string, count: number])[]

export const createRepeats = (): Repeats => new TurnRepeats()

/** What two calls share that count as the same. */
export function callKey(name: string, raw: string): string {
  const parsed = parseArguments(raw)
  const said = parsed.kind === 'parsed' ? canonicalJson(parsed.args) : `unparsable ${raw}`
  return `${name} ${said.length > SHORT ? textDigest(said) : said}`
}

/** Characters; what is longer is kept as its digest. */
const SHORT = 256

/** A class, because an agent has one of each and a thousand agents share their methods. */
class TurnRepeats implements Repeats {
  /** Made with the turn's first call. */
  #counts: Map<string, number> | undefined

  place(event: SessionEvent): void {
    if (event.type === 'turn/start') this.#counts = undefined
    if (event.type !== 'assistant/message' || event.data.calls.length === 0) return
    for (const block of event.data.message.content) {
      if (block.type !== 'tool-call') continue
      const { name, arguments: raw } = block as ToolCallBlock
      this.add(name, raw)
    }
  }

  add(name: string, raw: string): void {
    this.#counts ??= new Map()
    this.#counts.set(callKey(name, raw), this.count(name, raw) + 1)
  }

  saved(): SavedRepeats {
    return [...(this.#counts ?? [])]
  }

  restore(saved: SavedRepeats): void {
    this.#counts = saved.length === 0 ? undefined : new Map(saved)
  }

  count(name: string, raw: string): number {
    return this.#counts?.get(callKey(name, raw)) ?? 0
  }
}
