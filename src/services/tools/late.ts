/** What a tool says of a call that was answered without it: kept beside the conversation, where it moves nothing. */
import { toJson } from '../../log/json.ts'
import type { CallInput } from '../inputs.ts'
import type { AgentRuntime } from '../runtime.ts'
import type { CallResult } from '../verdicts.ts'

/** Records `tool/late-result`. A session that failed or closes takes nothing, and nobody is owed the word then. */
export function sayLate(runtime: AgentRuntime, { turn, step, callId, run }: CallInput, result: CallResult): undefined {
  if (runtime.session.failed.aborted || runtime.closing.aborted) return
  runtime.append({ type: 'tool/late-result', data: { turn, step, callId, run, outcome: toJson(result) } })
}
