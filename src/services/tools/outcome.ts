/** From what a tool gave or threw to what the log keeps: sizes bounded, errors with a stable code. */
import { PawlError } from '../../log/errors.ts'
import { MAX_EVENT_BYTES } from '../../log/events.ts'
import { utf8Bytes } from '../../log/json.ts'
import type { ContentBlock, TextBlock } from '../../log/messages.ts'
import { renderCauses } from '../llm/failure.ts'
import { maskResult } from '../masking/events.ts'
import type { Mask } from '../masking/mask.ts'
import type { CallResult } from '../verdicts.ts'
import type { ToolOutcome } from './contract.ts'

type ToolError = NonNullable<Extract<ToolOutcome, { kind: 'error' }>['error']>

/** A failed call, in words the model can act on. Without `error` it is nobody's fault: a denial. */
export const failedOutcome = (text: string, error?: ToolError): ToolOutcome =>
  Object.freeze({ kind: 'error', text, ...(error === undefined ? {} : { error: Object.freeze(error) }) })

export const unknownTool = (name: string, known: Iterable<string>): ToolOutcome =>
  failedOutcome(`There is no tool "${name}". Available: ${[...known].sort().join(', ') || 'none'}.`, {
    name: 'ToolNotFoundError',
    code: 'UNKNOWN_TOOL',
  })

export const invalidArguments = (message: string): ToolOutcome =>
  failedOutcome(`Invalid arguments. ${message}`, { name: 'ToolArgsError', code: 'INVALID_ARGS' })

export const invalidOutput = (message: string): ToolOutcome =>
  failedOutcome(`The tool gave back what it may not. ${message}`, {
    name: 'ToolOutputError',
    code: 'INVALID_TOOL_OUTPUT',
  })

export const timedOut = (ms: number): ToolOutcome =>
  failedOutcome(`The tool did not finish within ${ms} ms. What it had done by then stays done.`, {
    name: 'TimeoutError',
    code: 'TOOL_TIMEOUT',
  })

export const abortedWhileRunning: ToolOutcome = failedOutcome(
  'The turn was cancelled while the tool ran. It may have taken effect, wholly or in part.',
  { name: 'AbortError', code: 'ABORTED' },
)

/** It was dispatched, which the log holds: the code of a call that was not is not its. */
export const abortedBeforeBody: ToolOutcome = failedOutcome('Not run: the turn was cancelled before this call began.', {
  name: 'AbortError',
  code: 'ABORTED',
})

/** Only errors of ours carry a code: those of others are no vocabulary of the log. */
export const thrownOutcome = (thrown: unknown): ToolOutcome =>
  failedOutcome(`Error: ${renderCauses(thrown)}`, codeOf(thrown))

function codeOf(thrown: unknown): ToolError | undefined {
  try {
    if (!(thrown instanceof PawlError)) return undefined
    const { name, code } = thrown
    return isText(name) && isText(code) ? { name, code } : undefined
  } catch {
    // A revoked proxy, or an accessor of the thrown value, threw; nothing else runs in here.
    return undefined
  }
}

/** The outcome as the call's result, masked before it is measured; one too large for the log keeps its head and tail. */
export function resultOf(mask: Mask, outcome: ToolOutcome, meta?: CallResult['meta']): CallResult {
  const result: CallResult = maskResult(
    mask,
    outcome.kind === 'ok'
      ? { content: outcome.content, isError: false, ...(meta === undefined ? {} : { meta }) }
      : { content: [{ type: 'text', text: outcome.text }], isError: true, ...errorOf(outcome.error) },
  )
  if (isShort(result)) return result
  const bytes = utf8Bytes(JSON.stringify(result))
  return bytes > MAX_RESULT_BYTES ? tooLarge(result, bytes) : result
}

/** Nothing but one text, which fits whatever its characters take. */
function isShort({ content, meta, error }: CallResult): boolean {
  const [block] = content
  if (meta !== undefined || error !== undefined || content.length !== 1 || block?.type !== 'text') return false
  return Object.keys(block).length === 2 && String(block.text).length < SHORT
}

/** Characters, each of which may be six bytes of JSON. */
const SHORT = 65_536

/** What the log says of a call by itself, without its tool: no tool may say it for the log. */
const NOT_A_TOOLS: ReadonlySet<string> = new Set([
  'TOOL_OUTCOME_UNKNOWN',
  'TOOL_NOT_STARTED',
  'ABORTED_BEFORE_DISPATCH',
])

const errorOf = (error: ToolError | undefined) => (error === undefined || NOT_A_TOOLS.has(error.code) ? {} : { error })

/** Room in one event for the result's place and marks. */
const MAX_RESULT_BYTES = MAX_EVENT_BYTES - 16_384
const KEPT_CHARACTERS = 16_000

function tooLarge({ content }: CallResult, bytes: number): CallResult {
  const text = content.map((block) => (isTextBlock(block) ? block.text : JSON.stringify(block))).join('\n')
  const kept = `${text.slice(0, KEPT_CHARACTERS)}\n[... cut ...]\n${text.slice(-KEPT_CHARACTERS)}`
  return {
    content: [
      { type: 'text', text: `The result has ${bytes} bytes, too many to keep. Its beginning and end:\n${kept}` },
    ],
    isError: true,
    error: { name: 'ResultTooLargeError', code: 'RESULT_TOO_LARGE' },
  }
}

const isTextBlock = (block: ContentBlock): block is TextBlock => block.type === 'text'

const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''
