/**
 * Parts of a model's stream to chunks. Nothing is believed of a part until it is looked at; what has no place among our
 * blocks is kept as one that only its provider knows, `ai-sdk/...`, and is never run.
 */
import type { OpaqueBlock, StreamChunk } from '../../../log/messages.ts'
import { LlmError } from '../../errors.ts'
import { createRoom } from '../chat-completions/bounds.ts'
import { note } from '../chat-completions/diagnostics.ts'
import { listIn, objectIn, textIn, type WireObject } from '../chat-completions/wire-json.ts'
import { createBlocks, ended, metadataIn, started } from './blocks.ts'
import { createCalls } from './calls.ts'
import { finishReason } from './finish.ts'
import { isFields, jsonOf } from './json.ts'
import { isAnswer } from './parts.ts'
import { replayStateOf } from './replay.ts'
import { usageIn } from './usage.ts'
import { weightOf } from './weight.ts'
import { createWords } from './words.ts'

/** One answer on its way. */
export interface Translation {
  /**
   * The chunks of one part that is no error; those of a `finish` part are the last.
   * @throws LlmError for what the adapter cannot do: an approval, a call that is ours and was run elsewhere; and for
   * more than an answer may hold.
   */
  take(part: WireObject): readonly StreamChunk[]
  /** What the provider calls the answer; '' until it says so. */
  readonly id: string
}

/**
 * A translation that has seen nothing yet. `tools` are the names of the tools that the model may ask for,
 * `maxEventLength` is the most that one part may weigh.
 */
export function createTranslation(tools: ReadonlySet<string>, maxEventLength: number): Translation {
  const room = createRoom()
  const blocks = createBlocks()
  const words = createWords(blocks)
  const calls = createCalls(blocks, tools)
  let id = ''

  const keep = (type: OpaqueBlock['type'], fields: WireObject, metadata: unknown): readonly StreamChunk[] => {
    const kept = jsonOf(fields)
    if (!isFields(kept)) return []
    const slot = blocks.open(type)
    slot.metadata = metadataIn(metadata)
    return [started(slot), ended(slot, { ...kept, type })]
  }
  const finish = ({ finishReason: wire, ...part }: WireObject): readonly StreamChunk[] => {
    const says = words.visible || blocks.all.some(({ type }) => type.includes('/'))
    const reason = finishReason(wire, { asks: calls.any, says, unmade: calls.unmade })
    const usage = usageIn(part)
    const counted: readonly StreamChunk[] = usage === undefined ? [] : [{ type: 'usage', usage }]
    if (reason.kind === 'error' || reason.kind === 'aborted') return [...counted, { type: 'finish', reason }]
    const rest = [...words.endAll(), ...calls.endAll()]
    const state = replayStateOf({ id, metadata: part.providerMetadata }, blocks.metadata())
    return [...rest, ...counted, { type: 'finish', reason, ...state }]
  }
  const call = (part: WireObject): readonly StreamChunk[] => {
    if (part.providerExecuted !== true) return calls.made(part)
    calls.theirs(part)
    const { type, providerMetadata, providerExecuted, ...fields } = part
    return keep('ai-sdk/tool-call', fields, providerMetadata)
  }
  const take = (part: WireObject): readonly StreamChunk[] => {
    // Of a finish nothing is kept any more, and of what is no answer only the last.
    if (part.type !== 'finish' && isAnswer(part)) room.take(weightOf(part, maxEventLength))
    switch (part.type) {
      case 'text-start':
        return words.start('text', part)
      case 'text-delta':
        return words.delta('text', part)
      case 'text-end':
        return [...words.end('text', part), ...cited(part)]
      case 'reasoning-start':
        return words.start('reasoning', part)
      case 'reasoning-delta':
        return words.delta('reasoning', part)
      case 'reasoning-end':
        return words.end('reasoning', part)
      case 'tool-input-start':
        return calls.begin(part)
      case 'tool-input-delta':
        return calls.piece(part)
      case 'tool-input-end':
        return []
      case 'tool-call':
        return call(part)
      case 'finish':
        return finish(part)
      case 'tool-approval-request':
        throw new LlmError(NO_APPROVAL)
      default:
        return other(part)
    }
  }
  /** Those of version 4; the sources they name come as parts of their own as well. */
  const cited = ({ citations }: WireObject): readonly StreamChunk[] =>
    listIn(citations).length === 0 ? [] : keep('ai-sdk/citations', { citations }, undefined)
  const other = (part: WireObject): readonly StreamChunk[] => {
    const { type, providerMetadata, ...fields } = part
    switch (type) {
      case 'tool-result':
        return part.preliminary === true ? [] : keep('ai-sdk/tool-result', fields, providerMetadata)
      case 'file':
      case 'reasoning-file':
        return keep(`ai-sdk/${type}`, { mediaType: part.mediaType, ...contentOf(part.data) }, providerMetadata)
      case 'source':
      case 'custom':
        return keep(`ai-sdk/${type}`, fields, providerMetadata)
      case 'response-metadata':
        id = textIn(part.id) || id
        return []
      case 'stream-start':
        for (const warning of listIn(part.warnings)) note('model-warning', JSON.stringify(jsonOf(warning) ?? null))
        return []
      case 'ping':
      case 'raw':
        return []
      default:
        note('payload-skipped', `a part of type ${textIn(type)}`)
        return []
    }
  }
  return {
    take,
    get id() {
      return id
    },
  }
}

/** Before version 4 the bytes stand as they are, since then under a tag. */
function contentOf(data: unknown): WireObject {
  if (typeof data === 'string' || data instanceof Uint8Array) return { data }
  const { type, data: bytes, url, originalUrl } = objectIn(data)
  return type === 'url' ? { url: textIn(originalUrl) || `${url}` } : { data: bytes }
}

const NO_APPROVAL = {
  message: 'The provider asks for an approval of a tool that it runs itself: approvals here are for tools of the agent',
  code: 'UNSUPPORTED_CONTENT',
}
