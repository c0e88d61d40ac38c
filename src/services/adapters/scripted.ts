/**
 * A model that says what it is told to, chunk by chunk, with no network and no clock. For tests, demos and replays of
 * a bug; it keeps the adapter contract unless `chunks` spells out something else.
 */
import type { FinishReason, LlmFailure, StreamChunk, TokenUsage } from '../../log/messages.ts'
import type { LlmRequest } from '../../log/requests.ts'
import type { ModelAdapter, RetryPolicy } from '../llm/adapter.ts'

/** One piece of a scripted answer; made by `text`, `toolCall`, `fails` and the like. */
export type Part =
  | { readonly kind: 'text'; readonly text: string; readonly deltas: number }
  | { readonly kind: 'reasoning'; readonly text: string }
  | { readonly kind: 'tool-call'; readonly name: string; readonly arguments: string; readonly id?: string }
  | { readonly kind: 'usage'; readonly usage: TokenUsage }
  | { readonly kind: 'finish'; readonly reason: FinishReason }
  | { readonly kind: 'hang' }
  | { readonly kind: 'pause'; readonly gate: Gate }
  | { readonly kind: 'chunks'; readonly chunks: readonly StreamChunk[] }

/** What the model does on one attempt. A string is `text(s)`. */
export type Attempt = string | Part | readonly Part[]

/** Stops a scripted stream until it is released. */
export interface Gate {
  /** Resolves when a stream has come to the gate. */
  readonly reached: Promise<void>
  /** Lets the stream go on, now or when it comes. */
  release(): void
  /** What `pause` does: says the stream is here, and waits for `release` or an abort. */
  pass(signal: AbortSignal): Promise<void>
}

export interface ScriptedOptions {
  /** 'scripted' by default. */
  readonly provider?: string
  /** 'scripted' by default. */
  readonly model?: string
  readonly retry?: RetryPolicy
  /** Tokens. */
  readonly contextWindow?: number
}

/**
 * An adapter that plays `script`: one attempt each time it is asked, the n-th (from 0) of a list or what the function
 * gives. Asked once more than the list has, it fails with SCRIPT_EXHAUSTED. `requests` holds what it was asked, frozen.
 *
 * Parts imply their block-start and block-end, and the attempt a finish: `tool-calls` after a call, else `stop`. An
 * attempt with `chunks` implies none. Nothing is said after a finish.
 */
export function scripted(
  script: readonly Attempt[] | ((request: LlmRequest, n: number) => Attempt),
  options: ScriptedOptions = {},
): ModelAdapter & { readonly requests: readonly LlmRequest[] } {
  const requests: LlmRequest[] = []
  const attemptAt = typeof script === 'function' ? script : (_: LlmRequest, n: number) => script[n] ?? exhausted(n)
  let calls = 0
  const newCallId = () => `call-${++calls}`
  const { contextWindow } = options
  return {
    provider: options.provider ?? 'scripted',
    model: options.model ?? 'scripted',
    ...(options.retry && { retry: options.retry }),
    requests,
    prepare: async (config) => ({ config, ...(contextWindow !== undefined && { contextWindow }) }),
    stream(request, { signal }) {
      const asked = freezeDeep(structuredClone(request))
      const n = requests.push(asked) - 1
      return play(() => partsOf(attemptAt(asked, n)), { signal, newCallId })
    },
  }
}

/** Says `s`, in one delta or in `deltas` of about the same length (fewer if it has fewer characters). */
export const text = (s: string, o: { deltas?: number } = {}): Part => ({ kind: 'text', text: s, deltas: o.deltas ?? 1 })

/** Thinks `s` aloud. */
export const reasoning = (s: string): Part => ({ kind: 'reasoning', text: s })

/** Reports tokens. */
export const usage = (u: TokenUsage): Part => ({ kind: 'usage', usage: u })

/**
 * Asks for a tool. A string is taken as the raw arguments, valid JSON or not; anything else is written as JSON, and
 * undefined as `{}`. Without an id it is `call-1`, `call-2`, ... of this adapter.
 */
export const toolCall = (name: string, args: unknown, o: { id?: string } = {}): Part => ({
  kind: 'tool-call',
  name,
  arguments: typeof args === 'string' ? args : (JSON.stringify(args) ?? '{}'),
  ...(o.id !== undefined && { id: o.id }),
})

/** Ends the answer with `r`. */
export const finish = (r: FinishReason): Part => ({ kind: 'finish', reason: r })

/** Fails the request. A string in SCREAMING_CASE is the code, any other the message of a failure of code UNKNOWN. */
export const fails = (f: Partial<LlmFailure> | string): Part => {
  const facts = typeof f === 'string' ? (/^[A-Z][A-Z0-9_]*$/.test(f) ? { code: f } : { message: f }) : f
  const code = facts.code ?? 'UNKNOWN'
  return finish({ kind: 'error', failure: { message: `The script fails here: ${code}`, ...facts, code } })
}

/** Says no more until the request is aborted, then ends without a finish. */
export const hangs = (): Part => ({ kind: 'hang' })

/** Says exactly these, however wrong; without a finish among them the stream just ends. */
export const chunks = (c: readonly StreamChunk[]): Part => ({ kind: 'chunks', chunks: c })

/** Waits at the gate. */
export const pause = (g: Gate): Part => ({ kind: 'pause', gate: g })

/** A gate, closed. */
export function gate(): Gate {
  const reached = deferred()
  const released = deferred()
  return {
    reached: reached.promise,
    release: released.resolve,
    async pass(signal) {
      reached.resolve()
      await Promise.race([released.promise, aborted(signal)])
    },
  }
}

interface Stage {
  readonly signal: AbortSignal
  readonly newCallId: () => string
}

async function* play(open: () => readonly Part[], { signal, newCallId }: Stage): AsyncGenerator<StreamChunk> {
  const parts = open()
  let index = 0
  for (const part of [...parts, ...impliedFinish(parts)]) {
    if (part.kind === 'hang') await aborted(signal)
    if (part.kind === 'pause') await part.gate.pass(signal)
    const said = chunksOf(part, index, newCallId)
    for (const chunk of said) {
      if (signal.aborted) return
      yield chunk
    }
    if (signal.aborted || said.some((chunk) => chunk.type === 'finish')) return
    index = 1 + Math.max(index - 1, ...said.map((chunk) => ('index' in chunk ? chunk.index : -1)))
  }
}

const partsOf = (attempt: Attempt): readonly Part[] => {
  if (typeof attempt === 'string') return [text(attempt)]
  return 'kind' in attempt ? [attempt] : attempt
}

function impliedFinish(parts: readonly Part[]): readonly Part[] {
  if (parts.some((part) => part.kind === 'chunks')) return []
  return [finish({ kind: parts.some((part) => part.kind === 'tool-call') ? 'tool-calls' : 'stop' })]
}

function chunksOf(part: Part, index: number, newCallId: () => string): readonly StreamChunk[] {
  switch (part.kind) {
    case 'text':
      return wordChunks({ type: 'text', text: part.text }, index, part.deltas)
    case 'reasoning':
      return wordChunks({ type: 'reasoning', text: part.text }, index, 1)
    case 'tool-call':
      return callChunks(part, index, part.id ?? newCallId())
    case 'usage':
      return [{ type: 'usage', usage: part.usage }]
    case 'finish':
      return [{ type: 'finish', reason: part.reason }]
    case 'chunks':
      return part.chunks
    default:
      return []
  }
}

function wordChunks(block: { type: 'text' | 'reasoning'; text: string }, index: number, n: number): StreamChunk[] {
  const deltas = split(block.text, n).map((piece): StreamChunk => ({ type: `${block.type}-delta`, index, text: piece }))
  return [{ type: 'block-start', index, blockType: block.type }, ...deltas, { type: 'block-end', index, block }]
}

function callChunks(part: { name: string; arguments: string }, index: number, id: string): StreamChunk[] {
  const { name, arguments: args } = part
  return [
    { type: 'block-start', index, blockType: 'tool-call' },
    { type: 'tool-call-delta', index, id, name, argumentsDelta: args },
    { type: 'block-end', index, block: { type: 'tool-call', id, name, arguments: args } },
  ]
}

/** In whole code points: half a surrogate pair would not survive UTF-8. */
function split(s: string, deltas: number): string[] {
  const points = [...s]
  const n = Math.max(0, Math.min(Math.floor(deltas), points.length))
  const at = (i: number) => Math.floor((i * points.length) / n)
  return Array.from({ length: n }, (_, i) => points.slice(at(i), at(i + 1)).join(''))
}

const exhausted = (n: number): Attempt =>
  fails({ code: 'SCRIPT_EXHAUSTED', message: `The script has ${n} attempts and was asked for one more` })

/** Resolves when `signal` aborts, at once if it has. */
const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve = (): void => undefined
  const promise = new Promise<void>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}

function freezeDeep<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  for (const item of Object.values(value)) freezeDeep(item)
  return Object.freeze(value)
}
