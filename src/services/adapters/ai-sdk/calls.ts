/**
 * Tool calls. Their input may come in pieces; a call is only what a `tool-call` part says, and its input is the last
 * word. What the provider runs itself is no call of ours: it is kept as a block that only the provider knows.
 */
import type { StreamChunk } from '../../../log/messages.ts'
import { LlmError } from '../../errors.ts'
import { checkCount } from '../chat-completions/bounds.ts'
import { note } from '../chat-completions/diagnostics.ts'
import { createPieces, type Pieces } from '../chat-completions/pieces.ts'
import { textIn, type WireObject } from '../chat-completions/wire-json.ts'
import { type Blocks, ended, metadataIn, type Slot, started } from './blocks.ts'

export interface Calls {
  begin(part: WireObject): readonly StreamChunk[]
  piece(part: WireObject): readonly StreamChunk[]
  /** A call of ours; one that says under its id what it said before is no other. */
  made(part: WireObject): readonly StreamChunk[]
  /**
   * Takes note of a call that the provider runs itself.
   * @throws LlmError MALFORMED_RESPONSE where its input came as that of a tool of ours.
   */
  theirs(part: WireObject): void
  /** The name of a call whose input was begun, and which never came. */
  readonly unmade: string | undefined
  /** Ends the inputs that were cut off, as they are: an answer that was cut has no calls. */
  endAll(): readonly StreamChunk[]
  /** True once a call of ours is made. */
  readonly any: boolean
}

interface Input {
  readonly id: string
  readonly name: string
  readonly said: Pieces
  readonly metadata: unknown
  /** Absent while it may yet turn out to be the provider's own. */
  readonly slot?: Slot
}

/** None yet. `tools` are the names of ours: what is asked of them is shown as it comes. */
export function createCalls({ open }: Blocks, tools: ReadonlySet<string>): Calls {
  const inputs = new Map<string, Input>()
  /** What each call said, by its id. */
  const made = new Map<string, string>()

  const opened = (id: string, name: string, args: string): { slot: Slot; chunks: readonly StreamChunk[] } => {
    const slot = open('tool-call')
    const delta: StreamChunk = { type: 'tool-call-delta', index: slot.index, id, name, argumentsDelta: args }
    return { slot, chunks: [started(slot), delta] }
  }
  return {
    begin({ id: wireId, toolName, providerExecuted, providerMetadata }) {
      const id = textIn(wireId)
      const name = textIn(toolName)
      if (providerExecuted === true || inputs.has(id)) return []
      checkCount(inputs.size)
      const input = { id, name, said: createPieces(), metadata: metadataIn(providerMetadata) }
      const shown = tools.has(name) && !made.has(id) ? opened(id, name, '') : undefined
      inputs.set(id, { ...input, ...(shown && { slot: shown.slot }) })
      return shown?.chunks ?? []
    },
    piece({ id, delta }) {
      const input = inputs.get(textIn(id))
      const piece = textIn(delta)
      if (input === undefined || piece === '') return []
      input.said.add(piece)
      return input.slot ? [{ type: 'tool-call-delta', index: input.slot.index, argumentsDelta: piece }] : []
    },
    made({ toolCallId, toolName, input, providerMetadata }) {
      const id = textIn(toolCallId)
      const name = textIn(toolName)
      const args = argumentsOf(input)
      const begun = inputs.get(id)
      inputs.delete(id)
      if (id !== '' && made.get(id) === `${name} ${args}`) {
        note('call-repeated', id)
        return []
      }
      made.set(id, `${name} ${args}`)
      const { slot, chunks } = begun?.slot ? { slot: begun.slot, chunks: [] } : opened(id, name, args)
      slot.metadata = metadataIn(providerMetadata) ?? begun?.metadata
      return [...chunks, ended(slot, { type: 'tool-call', id, name, arguments: args })]
    },
    theirs({ toolCallId }) {
      const id = textIn(toolCallId)
      if (inputs.get(id)?.slot !== undefined) throw mistaken(id)
      inputs.delete(id)
    },
    get unmade() {
      return [...inputs.values()][0]?.name
    },
    endAll: () =>
      [...inputs.values()].flatMap(({ id, name, said, slot }) =>
        slot === undefined ? [] : [ended(slot, { type: 'tool-call', id, name, arguments: said.text() })],
      ),
    get any() {
      return made.size > 0
    },
  }
}

/** A string in every version of the specification; some providers give what it says. */
const argumentsOf = (input: unknown): string =>
  typeof input === 'string' ? input : input === undefined || input === null ? '' : (JSON.stringify(input) ?? '')

const mistaken = (id: string): LlmError =>
  new LlmError({
    message: `The provider ran call "${id.slice(0, 100)}" itself, which is of a tool that it was to ask for`,
    code: 'MALFORMED_RESPONSE',
  })
