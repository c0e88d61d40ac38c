/**
 * Ids of calls as a server takes them. What the log holds is never changed: an id that does not fit is mapped to a
 * digest of itself, the same way for call and result and in every request.
 */
import { createHash } from 'node:crypto'
import type { Message } from '../../../log/messages.ts'
import type { LlmRequest } from '../../../log/requests.ts'
import type { Dialect } from './dialect.ts'

export type WireIds = (id: string) => string

const DEFAULT_LENGTH = 40
const DEFAULT_PATTERN = /^[\w-]+$/

/** The mapping of one request. Without a rule of its own, a server takes back whatever it gave. */
export function wireIds(request: LlmRequest, { callIds }: Dialect): WireIds {
  const { maxLength = DEFAULT_LENGTH, pattern = DEFAULT_PATTERN } = callIds ?? {}
  const own = callIds === undefined ? idsOf(request) : new Set<string>()
  const fits = (id: string) => id.length <= maxLength && pattern.test(id)
  return (id) => (own.has(id) || fits(id) ? id : digestId(id, maxLength))
}

/** What `id` is mapped to where it does not fit. */
export const digestId = (id: string, maxLength = DEFAULT_LENGTH): string =>
  createHash('sha256').update(id).digest('hex').slice(0, maxLength)

/** The ids that the model which is asked gave itself. */
const idsOf = ({ messages, provider, model }: LlmRequest): ReadonlySet<string> =>
  new Set(messages.filter((message) => isFrom(message, provider, model)).flatMap(idsIn))

const isFrom = ({ source }: Message, provider: string, model: string): boolean =>
  source.kind === 'model' && source.provider === provider && source.model === model

const idsIn = (message: Message): readonly string[] =>
  message.content.flatMap((block) => (block.type === 'tool-call' ? [block.id] : []))
