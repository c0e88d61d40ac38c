/**
 * Digests: what was asked of a model, and what a call was approved for. A request's digest leaves out `sessionId`, which
 * names the session and is nothing the model reads; so the digests of a fork's inherited part stay true.
 */
import { createHash, type Hash } from 'node:crypto'
import { parseArguments } from './arguments.ts'
import type { Json } from './json.ts'
import { canonicalJson } from './json.ts'
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
 * that are new are read, so a long conversation makes no request slower. Messages must be frozen; they are compared by identity.
 */
export function createRequestDigester(): RequestDigester {
  let last: Progress | undefined
  let asked: LlmRequest | undefined
  let frame = { head: '', tail: '' }
  return {
    digest(request) {
      if (asked === undefined || !isAround(asked, request)) {
        asked = request
        frame = around(request)
      }
      const { head, tail } = frame
      if (last === undefined || last.head !== head || !beginsWith(request.messages, last.messages)) last = begin(head)
      readOn(last, request.messages)
      return finish(last.hash.copy().update(tail))
    },
  }
}

/** All but the messages is the very same. */
function isAround(one: LlmRequest, other: LlmRequest): boolean {
  let keys = 0
  for (const key in one) {
    keys += 1
    const name = key as keyof LlmRequest
    if (name !== 'messages' && one[name] !== other[name]) return false
  }
  for (const _ in other) keys -= 1
  return keys === 0
}

/** The hash of a request up to the end of its messages, and what it covers. */
interface Progress {
  readonly head: string
  messages: readonly Message[]
  readonly hash: Hash
}

/** The canonical JSON before and after the messages. Keys are sorted, so `maxTokens` comes before them, the rest after. */
function around(request: LlmRequest): { head: string; tail: string } {
  const { sessionId: _, messages: __, ...rest } = request
  const pair = ([key, value]: [string, unknown]) => `${JSON.stringify(key)}:${canonicalJson(asJson(value))}`
  const pairs = Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1))
  const before = pairs.filter(([key]) => key < 'messages').map((entry) => `${pair(entry)},`)
  const after = pairs.filter(([key]) => key > 'messages').map((entry) => `,${pair(entry)}`)
  return { head: `{${before.join('')}"messages":[`, tail: `]${after.join('')}}` }
}

const begin = (head: string): Progress => ({ head, messages: [], hash: createHash('sha256').update(head) })

function readOn(progress: Progress, messages: readonly Message[]): void {
  let text = ''
  for (let i = progress.messages.length; i < messages.length; i++) {
    text += `${i > 0 ? ',' : ''}${canonicalJson(asJson(messages[i]))}`
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
  return finish(createHash('sha256').update(parsed.kind === 'parsed' ? canonicalJson(parsed.args) : raw))
}

const finish = (hash: Hash): string => `sha256:${hash.digest('hex')}`

/** Requests are made of log values, which are JSON; their types are interfaces, which TypeScript will not take for it. */
const asJson = (value: unknown): Json => value as Json
