/** Why a model of the AI SDK stopped, in our words. */
import type { FinishReason, LlmFailure } from '../../../log/messages.ts'
import { note } from '../chat-completions/diagnostics.ts'
import { objectIn, textIn } from '../chat-completions/wire-json.ts'
import { codeOfWord } from '../chat-completions/wording.ts'

/** What the answer has by the time it stops. */
export interface Said {
  /** A tool is asked for. */
  readonly asks: boolean
  /** There is text, or something that the provider made. */
  readonly says: boolean
  /** A call was begun and never made. */
  readonly unmade: string | undefined
}

/** `wire` is a word in version 2 of the specification, since then an object with the provider's own word. */
export function finishReason(wire: unknown, said: Said): FinishReason {
  const unified = textIn(wire) || textIn(objectIn(wire).unified)
  const raw = textIn(objectIn(wire).raw)
  switch (unified) {
    case 'length':
      return { kind: 'max-tokens' }
    case 'stop':
    case 'tool-calls':
      return said.unmade === undefined ? stopped(unified, said) : failed(unmade(said.unmade))
    case 'content-filter':
      return failed({ message: stop(raw || unified), code: 'CONTENT_FILTER' })
    case 'interrupted':
    case 'unknown':
      return failed(CLOSED)
    case 'other':
      // Without a word of the server's own there was none: its stream broke off, and the provider closed it.
      return failed(raw === '' && typeof wire === 'object' ? CLOSED : stoppedFor(raw || unified))
    case 'error':
      return failed(raw === '' ? { message: stop(unified), code: 'SERVER' } : stoppedFor(raw))
    default:
      return failed(unified === '' && raw === '' ? CLOSED : stoppedFor(raw || unified))
  }
}

function stopped(unified: 'stop' | 'tool-calls', { asks, says }: Said): FinishReason {
  if (unified === 'stop') return asks || says ? { kind: 'stop' } : failed(SILENT)
  if (asks) return { kind: 'tool-calls' }
  // Asking again would give the same: the model believes it has called something, or its provider ran it.
  if (!says) note('calls-missing')
  return { kind: 'stop' }
}

const failed = (failure: LlmFailure): FinishReason => ({ kind: 'error', failure })

const stop = (why: string): string => `The provider stopped the answer: ${why.slice(0, 200)}`

const stoppedFor = (why: string): LlmFailure => ({
  message: stop(why),
  code: codeOfWord(why),
})

const unmade = (name: string): LlmFailure => ({
  message: `The provider began a call of "${name.slice(0, 100)}" and never made it`,
  code: 'MALFORMED_RESPONSE',
})

const SILENT: LlmFailure = Object.freeze({
  message: 'The model stopped without any text or tool call',
  code: 'EMPTY_RESPONSE',
})

/** The stream ended without the model's own word for why. */
export const CLOSED: LlmFailure = Object.freeze({
  message: 'The stream ended before the model said it was done',
  code: 'STREAM_CLOSED',
})

/** The stream ended, and nothing had come. */
export const NOTHING: LlmFailure = Object.freeze({
  message: 'The provider gave an empty answer',
  code: 'EMPTY_RESPONSE',
})
