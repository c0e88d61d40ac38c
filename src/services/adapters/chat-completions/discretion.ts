/** What a request carries and no failure may show: its key, and the query of its address. */
import type { LlmFailure, StreamChunk } from '../../../log/messages.ts'
import { createMask, type Mask } from '../../masking/mask.ts'
import { MARK } from '../../masking/spans.ts'
import { capitals } from './wording.ts'

/** A request with its secrets. */
export interface Carrying {
  readonly endpoint: URL
  readonly apiKey?: string
}

const MAX_MESSAGE = 2_000

/** Shorter keys are placeholders for servers that ask for none, and words of ordinary messages. */
const SECRET_LENGTH = 8

/** A failure without the key and what the query holds, should a server or a cause repeat them. */
export function discreet(failure: LlmFailure, call: Carrying | undefined): LlmFailure {
  if (call === undefined) return Object.freeze({ ...failure, message: failure.message.slice(0, MAX_MESSAGE) })
  const secrets = secretsOf(call)
  const { requestId } = failure
  // The mask finds them also as JSON and the like write them, where a body is quoted as it came.
  const message = maskOf(call).text(without(secrets, failure.message, '[hidden]'))
  return Object.freeze({
    ...failure,
    message: message.slice(0, MAX_MESSAGE),
    code: without(secretsInCodes(call), failure.code, 'HIDDEN'),
    ...(requestId !== undefined && { requestId: without(secrets, requestId, '[hidden]') }),
  })
}

type Finish = Extract<StreamChunk, { type: 'finish' }>

/** A finish whose failure, if it has one, is discreet. */
export function discreetly(finish: Finish, call: Carrying): Finish {
  const { reason } = finish
  return reason.kind === 'error'
    ? { ...finish, reason: { ...reason, failure: discreet(reason.failure, call) } }
    : finish
}

/** Masks what the request carries in notes, for as long as the result is kept. */
export const hiddenInNotes = (call: Carrying): object => maskOf(call)

const maskOf = (call: Carrying): Mask =>
  createMask({ secrets: secretsOf(call).filter((secret) => !MARK.includes(secret)) })

const secretsOf = (call: Carrying): readonly string[] => longestFirst([call.endpoint.search, ...valuesOf(call)])

/** As they would stand in a code. Of the query only the values: the names in it are words of ordinary codes. */
const secretsInCodes = (call: Carrying): readonly string[] => longestFirst(valuesOf(call).map(capitals))

/** The key, and the values of the query: as they are written, and as they are read. */
function valuesOf({ apiKey = '', endpoint }: Carrying): readonly string[] {
  const pairs = endpoint.search.slice(1).split('&')
  const written = pairs.map((pair) => pair.slice(pair.indexOf('=') + 1))
  return [apiKey, ...written, ...endpoint.searchParams.values()]
}

/** Of two that begin alike, the shorter would leave the end of the longer. */
const longestFirst = (secrets: readonly string[]): readonly string[] =>
  secrets.filter(({ length }) => length >= SECRET_LENGTH).sort((a, b) => b.length - a.length)

/** Whole ones first: what one of them begins with may be the beginning of another. */
function without(secrets: readonly string[], text: string, mark: string): string {
  const whole = secrets.reduce((rest, secret) => rest.replaceAll(secret, mark), text)
  return secrets.reduce((rest, secret) => withoutBeginnings(rest, secret, mark), whole)
}

/** `text` with a mark for what `secret` begins with: a quote of a body may have been cut in the middle of it. */
function withoutBeginnings(text: string, secret: string, mark: string): string {
  const head = secret.slice(0, SECRET_LENGTH)
  let shown = ''
  let from = 0
  for (let at = text.indexOf(head); at >= 0; at = text.indexOf(head, from)) {
    shown += text.slice(from, at) + mark
    from = at + head.length
    while (from < text.length && text[from] === secret[from - at]) from++
  }
  return shown + text.slice(from)
}
