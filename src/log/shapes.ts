/**
 * What the data of each event type must look like. Checks are plain functions over values already known to be JSON;
 * keys they do not know pass, because an event changes by new optional fields.
 */
import type { EventType } from './events.ts'
import type { Json } from './json.ts'

/** Undefined if all is well, else what is wrong: a place and a sentence, such as `.turn must be an integer from 1`. */
export type Check = (value: Json | undefined) => string | undefined

type Fields = { readonly [key: string]: Check }
type Rec = { readonly [key: string]: Json }

const isRecord = (value: Json | undefined): value is Rec =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const must =
  (test: (value: Json | undefined) => boolean, what: string): Check =>
  (value) =>
    test(value) ? undefined : ` must be ${what}`

const string = must((value) => typeof value === 'string', 'a string')
const name = must((value) => typeof value === 'string' && value !== '', 'a string that is not empty')
const count = must((value) => Number.isSafeInteger(value) && Number(value) >= 0, 'an integer from 0')
const ordinal = must((value) => Number.isSafeInteger(value) && Number(value) >= 1, 'an integer from 1')
const amount = must((value) => typeof value === 'number' && value >= 0, 'a number from 0')
const number = must((value) => typeof value === 'number', 'a number')
const flag = must((value) => typeof value === 'boolean', 'true or false')
const yes = must((value) => value === true, 'true, or absent')
const json = must((value) => value !== undefined, 'present')
const digest = must((value) => typeof value === 'string' && value.startsWith('sha256:'), 'a sha256 digest')

const oneOf = (...values: readonly string[]): Check => {
  const set = new Set<Json | undefined>(values)
  return must((value) => set.has(value), `one of ${values.join(', ')}`)
}

const list =
  (check: Check): Check =>
  (value) => {
    if (!Array.isArray(value)) return ' must be an array'
    for (let i = 0; i < value.length; i++) {
      const wrong = check(value[i])
      if (wrong !== undefined) return `[${i}]${wrong}`
    }
    return undefined
  }

const object = (required: Fields, optional: Fields = {}): Check => {
  const needed = Object.entries(required)
  const allowed = Object.entries(optional)
  return (value) => {
    if (!isRecord(value)) return ' must be an object'
    for (const [key, check] of needed) {
      const wrong = check(value[key])
      if (wrong !== undefined) return `.${key}${wrong}`
    }
    for (const [key, check] of allowed) {
      if (value[key] === undefined) continue
      const wrong = check(value[key])
      if (wrong !== undefined) return `.${key}${wrong}`
    }
    return undefined
  }
}

/** A union told apart by `tag`. Tags it does not know are judged by `other`, or refused. */
const union = (tag: string, variants: Fields, other?: Check): Check => {
  const known = new Map(Object.entries(variants))
  const names = [...known.keys()].join(', ')
  return (value) => {
    if (!isRecord(value)) return ' must be an object'
    const kind = value[tag]
    const check = typeof kind === 'string' ? (known.get(kind) ?? other) : undefined
    return check ? check(value) : `.${tag} must be one of ${names}`
  }
}

const all =
  (...checks: readonly Check[]): Check =>
  (value) => {
    for (const check of checks) {
      const wrong = check(value)
      if (wrong !== undefined) return wrong
    }
    return undefined
  }

const anything: Check = () => undefined

// ── messages and their blocks; types of blocks and kinds of sources are open for extension

const text = object({ text: string })
const block: Check = (value) => contentBlock(value)
const contentBlock = union(
  'type',
  {
    text,
    reasoning: text,
    image: object({ attachment: json }),
    // A provider may leave the id out of a chunk; the call's own id, minted then, is checked where calls are scheduled.
    'tool-call': object({ id: string, name: string, arguments: string }),
    'tool-result': object({ toolCallId: name, content: list(block) }, { isError: flag }),
  },
  anything,
)
const content = list(block)

/** The blocks of a message, or of a tool's result. */
export const contentBlocks: Check = content

const refused = (what: string): Check => must(() => false, what)
const userSource = union(
  'kind',
  {
    user: anything,
    plugin: object({ plugin: string }, { form: string, sections: list(object({ name: string, text: string })) }),
    model: refused('of a person or a plug-in, not a model'),
    tool: refused('of a person or a plug-in, not a tool'),
  },
  anything,
)
const replayState = object({ response: json }, { blocks: list(json) })
const modelSource = object({ kind: oneOf('model'), provider: name, model: name }, { replayState })

/** A user's or a plug-in's message. */
export const userMessage: Check = object({ id: name, role: oneOf('user'), content, source: userSource })
const assistantMessage = object({ id: name, role: oneOf('assistant'), content, source: modelSource })

const oneResult: Check = (value) => {
  if (!isRecord(value) || !Array.isArray(value.content) || !isRecord(value.source)) return undefined
  const [first] = value.content
  if (value.content.length !== 1 || !isRecord(first) || first.type !== 'tool-result') {
    return '.content must be exactly one tool-result block'
  }
  return first.toolCallId === value.source.callId ? undefined : '.content[0].toolCallId must equal source.callId'
}
const toolMessage = all(
  object({ id: name, role: oneOf('user'), content, source: object({ kind: oneOf('tool'), callId: name }) }),
  oneResult,
)

const failure = object(
  { message: string, code: name },
  { status: count, providerRetryAfterMs: amount, requestId: name },
)
const failed = object({ failure })
const finish = union('kind', {
  stop: anything,
  'tool-calls': anything,
  'max-tokens': anything,
  error: failed,
  aborted: failed,
})
const usage = object(
  { inputTokens: count, outputTokens: count },
  { cacheReadTokens: count, cacheWriteTokens: count, reasoningTokens: count },
)

const delta = object({ index: count, text: string })
const chunk = union('type', {
  'block-start': object({ index: count, blockType: name }),
  'text-delta': delta,
  'reasoning-delta': delta,
  'tool-call-delta': object({ index: count, argumentsDelta: string }, { id: string, name: string }),
  'block-end': object({ index: count, block }),
  usage: object({ usage }),
  finish: object({ reason: finish }, { replayState }),
})

/** One chunk of a model's stream. */
export const streamChunk: Check = chunk

// ── turns, steps, requests

const limit = object(
  {
    name: oneOf('tokens', 'time', 'cost'),
    scope: oneOf('turn', 'session'),
    max: amount,
    spent: amount,
  },
  { estimated: yes },
)
const cause = union('kind', {
  user: anything,
  parent: anything,
  disposed: anything,
  hook: object({ reason: string }),
  limit: object({ limit }),
  'repeated-call': object({ name: string, count }),
})
const price = object({ input: amount, output: amount }, { cacheRead: amount, cacheWrite: amount })
const reason = union('kind', {
  completed: anything,
  blocked: object({}, { reason: string }),
  error: object({ error: failure }),
  aborted: object({ cause }),
  'max-tokens': anything,
  'max-steps': object({ maxSteps: count }),
  limit: object({ limit }),
  'repeated-call': object({ name: string, count }),
  interrupted: object({}, { cause: oneOf('recovery-limit') }),
  'stopped-by-policy': object({ policy: string }, { reason: string }),
})
const outcome = union('kind', {
  completed: anything,
  'tool-calls': anything,
  concluded: anything,
  'max-tokens': anything,
  aborted: anything,
  interrupted: anything,
  error: object({ error: failure }),
})
const config = object(
  { provider: name, model: name },
  { reasoningEffort: name, temperature: number, maxTokens: ordinal, stop: list(string) },
)
/** The configuration of a request. */
export const callConfig: Check = config

/** A tool as the model is shown it. */
export const toolSchema: Check = object({ name, description: string, parameters: object({}) })
const toolSchemas = list(toolSchema)
/** The system text and the tools of a request. */
export const promptShape: Check = object({ tools: toolSchemas }, { system: string })

/** What a request is made of beside its messages. */
export const requestHeader: Check = object(
  { config },
  {
    adapterDefaults: object({}, { reasoningEffort: yes, maxTokens: yes }),
    system: string,
    tools: toolSchemas,
  },
)

const inTurn = { turn: ordinal }
const inStep = { turn: ordinal, step: ordinal }
const inCall = { ...inStep, callId: name }
const retryFields = {
  ...inStep,
  attempt: ordinal,
  retryId: name,
  provider: name,
  policyKey: string,
  retry: ordinal,
  delayMs: amount,
  failure,
}
const item = union('kind', {
  message: object({ message: userMessage }),
  'tool-result': object({ turn: ordinal, callId: name }),
})
const mode = oneOf('parallel', 'exclusive')

/** The check of every type this version knows. */
export const SHAPES: { readonly [K in EventType]: Check } = {
  'agent/inbox/spliced': object(
    {
      mutation: oneOf('splice'),
      queue: oneOf('next-turn', 'next-step'),
      start: count,
      deleteCount: count,
      inserted: list(item),
    },
    { outcome: oneOf('claimed', 'canceled'), wake: yes },
  ),
  'turn/start': object({ ...inTurn, limits: object({ maxSteps: ordinal, maxParallelToolCalls: ordinal }) }),
  'turn/cancel': object({ ...inTurn, cause }, { keepInbox: yes }),
  'turn/end': object({ ...inTurn, reason }),
  'step/start': object(inStep),
  'step/end': object({ ...inStep, outcome }),
  'assistant/message': object(
    {
      ...inStep,
      attempt: ordinal,
      message: assistantMessage,
      finish,
      calls: list(object({ callId: name, name: string, mode })),
    },
    { usage, interrupted: yes },
  ),
  'llm/retry': union('mode', {
    normal: object({ ...retryFields, maxRetries: count }),
    always: object(retryFields),
  }),
  'llm/retry-started': object({ ...inStep, attempt: ordinal, retryId: name, retry: ordinal }),
  'tool/call': object({ ...inCall, name: string, arguments: string }),
  'tool/approval-requested': object(
    { ...inCall, run: count, name: string, argumentsDigest: digest, purpose: oneOf('run', 'rerun') },
    { expiresAt: number },
  ),
  'tool/approval-resolved': object(
    { ...inCall, run: count, decision: oneOf('approved', 'denied', 'expired') },
    { reason: string, by: string },
  ),
  'tool/dispatch': object({ ...inCall, run: ordinal, onCrash: oneOf('unknown', 'rerun', 'ask', 'probe') }),
  'tool/result': object(
    { ...inStep, message: toolMessage },
    { error: object({ name: string, code: name }), meta: anything, concludesTurn: yes },
  ),
  'session/resumed': object(
    { recovery: oneOf('continue', 'interrupt'), resumes: count, version: string, chart: string },
    { cause: oneOf('recovery-limit') },
  ),
  'session/suspended': object({}),
  'session/end-seed': object({}),
  'user/message': userMessage,
  'assistant/chunk': object({ ...inStep, attempt: ordinal, chunk }, { request: digest }),
  'request/header': object({ header: requestHeader, reason: oneOf('initial', 'resume', 'change') }),
  'request/context': object({ provider: name, model: name }, { contextWindow: ordinal, price }),
  'tool/late-result': object({ ...inCall, run: count, outcome: json }),
  'agent/hook-failed': object({ hook: name, turn: count, error: failure }, { step: count }),
}
