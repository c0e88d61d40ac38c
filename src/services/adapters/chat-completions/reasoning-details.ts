/**
 * Details of reasoning (signatures, encrypted parts) that some servers send beside its text and want back as they
 * were. They travel as replay state: nobody else reads them, and no other model is shown them.
 */
import { type Json, toJson } from '../../../log/json.ts'
import type { AssistantMessage, ReplayState } from '../../../log/messages.ts'
import type { LlmRequest } from '../../../log/requests.ts'
import { note } from './diagnostics.ts'
import { objectIn } from './wire-json.ts'

/** The replay state of an answer whose deltas brought `details`; none if they brought none, or what no log can hold. */
export function replayStateOf(details: readonly unknown[]): { readonly replayState?: ReplayState } {
  const kept = details.length === 0 ? undefined : loggable([...details])
  return kept === undefined ? {} : { replayState: { response: { reasoning_details: kept } } }
}

/** What goes back with `message` to the model that said it. */
export function detailsFor(message: AssistantMessage, request: LlmRequest): { readonly reasoning_details?: unknown } {
  const { provider, model, replayState } = message.source
  if (provider !== request.provider || model !== request.model) return {}
  const { reasoning_details } = objectIn(replayState?.response)
  return Array.isArray(reasoning_details) ? { reasoning_details } : {}
}

function loggable(value: unknown): Json | undefined {
  try {
    return toJson(value)
  } catch (thrown) {
    // Parsed JSON that the log refuses: nested too deep, or a negative zero.
    note('payload-skipped', String(thrown))
    return undefined
  }
}
