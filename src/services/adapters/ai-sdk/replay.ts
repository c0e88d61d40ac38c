/**
 * What a provider gave beside its words (signatures, encrypted reasoning, ids) and wants back on the same parts. It
 * travels as replay state, one entry a block, and only to the model that gave it.
 */
import type { Json } from '../../../log/json.ts'
import type { AssistantMessage, ReplayState } from '../../../log/messages.ts'
import type { LlmRequest } from '../../../log/requests.ts'
import { note } from '../chat-completions/diagnostics.ts'
import { isFields, jsonOf, optionsIn } from './json.ts'
import type { PlainOptions } from './model.ts'

/** Characters of what a provider says of the answer as a whole; the likes of log probabilities are more. */
const MAX_RESPONSE = 16_384

/** The replay state of an answer; none where its provider gave nothing. `blocks` has an entry a block, null for none. */
export function replayStateOf(
  response: { readonly id: string; readonly metadata: unknown },
  blocks: readonly (Json | null)[],
): { readonly replayState?: ReplayState } {
  const said = responseOf(response)
  const stated = blocks.some((metadata) => metadata !== null)
  if (!stated && Object.keys(said).length === 0) return {}
  return { replayState: { response: said, ...(stated && { blocks }) } }
}

function responseOf({ id, metadata }: { readonly id: string; readonly metadata: unknown }) {
  const kept = jsonOf(metadata)
  const empty = !isFields(kept) || Object.values(kept).every((of) => isFields(of) && Object.keys(of).length === 0)
  const tooLong = !empty && JSON.stringify(kept).length > MAX_RESPONSE
  if (tooLong) note('payload-skipped', 'the metadata of the answer is too long to keep')
  return { ...(id !== '' && { id }), ...(!empty && !tooLong && { providerMetadata: kept }) }
}

/** True for a message of the model that is asked. */
export const isOwn = ({ source }: AssistantMessage, { provider, model }: LlmRequest): boolean =>
  source.provider === provider && source.model === model

/** What goes back with each block of `message`, by its place; nothing to another model. */
export function optionsOf(message: AssistantMessage, request: LlmRequest): (place: number) => PlainOptions | undefined {
  const blocks = isOwn(message, request) ? message.source.replayState?.blocks : undefined
  // Out of step they would sign the words of another block.
  if (blocks === undefined || blocks.length !== message.content.length) return () => undefined
  return (place) => optionsIn(blocks[place])
}
