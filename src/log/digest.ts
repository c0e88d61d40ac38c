/**
 * Digests: what was asked of a model, and what a call was approved for. A request's digest leaves out `sessionId`, which
 * names the session and is nothing the model reads; so the digests of a fork's inherited part stay true.
 */
import { createHash, type Hash } from 'node:crypto'
import { parseArguments } from './arguments.ts'
import { canonicalJson, type Json } from './json.ts'
import type { Message } from './messages.ts'
import { beginsWith } from './projections/surface.ts'
import type { LlmRequest } from './requests.ts'

/** 'sha256:' and the hex digest of the request's canonical JSON, without `sessionId`. */
export function requestDigest(request: LlmRequest): string {
  const { sessionId: _, ...read } = request
  return finish(createHash('sha256').update(canonicalJson(asJson(read))))
}

export interface RequestDigester {
  /** Equals `requestDigest(request)`. */
  digest(request: LlmRequest): string
}

/**
 * Digests the requests of one conversation. Each usually extends the one before, whose hash is carried on: only messages
 * that are new are read, so a long conversation makes no request slower. Requests must be frozen all through, as those
 * made of a log are: their parts are compared by identity.
 */
export function createRequestDigester(): RequestDigester {
  let asked: LlmRequest | undefined
  let frame: Frame = { head: '', tail: '' }
  let last: Progress | undefined
  return {
    digest(request) {
      if (asked === undefined || !isFramedAlike(asked, request)) frame = frameOf(request)
      asked = request
      if (last === undefined || last.head !== frame.head || !beginsWith(request.messages, last.messages)) {
        last = begin(frame.head)
      }
      readOn(last, request.messages)
      return finish(last.hash.copy().update(frame.tail))
    },
  }
}

/** All but the messages is the very same: most requests differ in nothing else from the one before. */
function isFramedAlike(one: LlmRequest, other: LlmRequest): boolean {
  const keys = Object.keys(one) as (keyof LlmRequest)[]
  return keys.length === Object.keys(other).length && keys.every((key) => key === 'messages' || one[key] === other[key])
}

/** The canonical JSON before and after the messages. */
interface Frame {
  readonly head: string
  readonly tail: string
}

/** Keys are sorted, so `maxTokens` comes before the messages, the rest after. */
function frameOf(request: LlmRequest): Frame {
  const { sessionId: _, messages: __, ...rest } = request
  const pair = ([key, value]: [string, unknown]) => `${JSON.stringify(key)}:${canonicalJson(asJson(value))}`
  const pairs = Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1))
  const before = pairs.filter(([key]) => key < 'messages').map((entry) => `${pair(entry)},`)
  const after = pairs.filter(([key]) => key > 'messages').map((entry) => `,${pair(entry)}`)
  return { head: `{${before.join('')}"messages":[`, tail: `]${after.join('')}}` }
}

/** The hash of a request up to the end of its messages, and what it covers. */
interface Progress {
  readonly head: string
  readonly hash: Hash
  messages: readonly Message[]
}

const begin = (head: string): Progress => ({ head, messages: [], hash: createHash('sha256').update(head) })

/** Hashed together up to so many characters: each update costs as much as a few hundred of them. */
const UPDATE = 65_536

function readOn(progress: Progress, messages: readonly Message[]): void {
  let text = ''
  for (let i = progress.messages.length; i < messages.length; i++) {
    text += `${i > 0 ? ',' : ''}${canonicalJson(asJson(messages[i]))}`
    if (text.length < UPDATE) continue
    progress.hash.update(text)
    text = ''
  }
  progress.hash.update(text)
  progress.messages = messages
}

/**
 * 'sha256:' and the hex digest of the canonical JSON of a call's parsed arguments, so that spaces and the order of keys
 * do not matter; of the raw string's UTF-8 bytes if it is unparsable. What a tool is given is what is digested.
 */
export function argumentsDigest(raw: string): string {
  const parsed = parseArguments(raw)
  return textDigest(parsed.kind === 'parsed' ? canonicalJson(parsed.args) : raw)
}

/** 'sha256:' and the hex digest of a text's UTF-8 bytes. */
export const textDigest = (text: string): string => finish(createHash('sha256').update(text))

const finish = (hash: Hash): string => `sha256:${hash.digest('hex')}`

/** Requests are made of log values, which are JSON; their types are interfaces, which TypeScript will not take for it. */
const asJson = (value: unknown): Json => value as Json
