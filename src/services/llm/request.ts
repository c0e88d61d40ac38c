/** Builds one attempt's request from the log: proposes a config, lets the hook and the adapter complete it, and logs the header. */
import { InvalidEvent } from '../../log/errors.ts'
import { equalJson, frozenJson, type Json, toJson } from '../../log/json.ts'
import type { LlmCallConfig, LlmRequest, RequestHeader } from '../../log/requests.ts'
import { requestHeader } from '../../log/shapes.ts'
import { InvalidOption } from '../errors.ts'
import type { Prompt } from '../hooks/contract.ts'
import { callHook } from '../hooks/failure.ts'
import type { AskModelInput } from '../inputs.ts'
import { maskHeader } from '../masking/events.ts'
import type { AgentRuntime } from '../runtime.ts'
import type { ModelAdapter, PreparedCall } from './adapter.ts'

export interface BuiltRequest {
  readonly request: LlmRequest
  /** Absent where no adapter serves the config; a hook around the stream may. */
  readonly adapter: ModelAdapter | undefined
}

/**
 * Messages are derived first: what is injected while the request is being made belongs to the next step. `signal` ends
 * the request: by the time a hook or an adapter has answered, another turn may be open, or the session suspended.
 * @throws what the hook and the adapter's `prepare` throw; the signal's reason.
 */
export async function buildRequest(
  runtime: AgentRuntime,
  input: AskModelInput,
  { prompt, signal }: { readonly prompt: Prompt; readonly signal: AbortSignal },
): Promise<BuiltRequest> {
  const { session } = runtime
  const messages = session.messages()
  const config = await decideConfig(runtime, input)
  signal.throwIfAborted()
  const adapter = runtime.adapterOf(config.provider, config.model)
  const prepared: PreparedCall = (await adapter?.prepare?.(config, signal)) ?? { config }
  signal.throwIfAborted()
  const call = ownCall(prepared)
  if (runtime.settings.needsPrice) assertPriced(call)
  const header = loggedHeader(runtime, call, prompt)
  const { config: logged, system, tools } = header
  const request: LlmRequest = {
    ...logged,
    messages,
    ...(system === undefined ? {} : { system }),
    ...(tools === undefined ? {} : { tools }),
    sessionId: session.id,
  }
  return { request: Object.freeze(request), adapter }
}

/** What an adapter prepared, read once. @throws NotJson */
function ownCall({ config, adapterDefaults, contextWindow, price }: PreparedCall): PreparedCall {
  const { reasoningEffort, maxTokens } = adapterDefaults ?? {}
  const marks = {
    ...(reasoningEffort && { reasoningEffort: true as const }),
    ...(maxTokens && { maxTokens: true as const }),
  }
  return {
    config: frozenJson(config, '$.config'),
    ...(reasoningEffort || maxTokens ? { adapterDefaults: marks } : {}),
    ...(contextWindow === undefined ? {} : { contextWindow: frozenJson(contextWindow, '$.contextWindow') }),
    ...(price === undefined ? {} : { price: frozenJson(price, '$.price') }),
  }
}

/** What the last header of an agent was made of, and where it stands in the log. */
interface Last {
  readonly system: string | undefined
  readonly tools: Prompt['tools']
  readonly call: string
  readonly header: RequestHeader
  readonly context: unknown
}

const lasts = new WeakMap<AgentRuntime, Last>()

/**
 * The header as the log has it, where it is by now. Made of the very same as the last one it is the last one: nothing
 * is masked, compared or copied again.
 */
function loggedHeader(runtime: AgentRuntime, call: PreparedCall, { system, tools }: Prompt): RequestHeader {
  const { session } = runtime
  const last = lasts.get(runtime)
  const key = JSON.stringify(call)
  const isSame =
    last?.tools === tools &&
    last.system === system &&
    last.call === key &&
    // What others logged since counts.
    last.header === session.requestHeader &&
    last.context === session.requestContext
  if (isSame) return last.header
  logHeader(runtime, maskHeader(runtime.mask, headerOf(call, { ...(system ? { system } : {}), tools })))
  logContext(runtime, call)
  const header = session.requestHeader as RequestHeader
  lasts.set(runtime, { system, tools, call: key, header, context: session.requestContext })
  return header
}

/** @throws InvalidOption: what cannot be counted cannot be limited. */
export function assertPriced({ config: { provider, model }, price }: PreparedCall): void {
  if (price !== undefined) return
  throw new InvalidOption(
    'limits.cost',
    `"${model}" of "${provider}" states no price: give its adapter one, or no limit`,
  )
}

async function decideConfig(runtime: AgentRuntime, input: AskModelInput): Promise<LlmCallConfig> {
  const { turn, step, attempt } = input
  const { signal } = runtime.turn
  const proposal = toJson(propose(runtime)) as unknown as LlmCallConfig
  const payload = { turn, step, attempt, config: proposal, signal }
  return callHook(runtime, 'agent/request', { turn, step }, payload, async () => proposal)
}

/**
 * The first request of a process takes the agent's options, with the logged effort for the same model; later ones what
 * was logged last, so that a change proposed once stays. What an adapter filled in is never proposed.
 */
function propose({ session, settings, headerLogged }: AgentRuntime): LlmCallConfig {
  const logged = session.requestHeader
  if (headerLogged && logged !== null) return withoutDefaults(logged)
  const { provider, model } = settings.model
  const same = logged !== null && logged.config.provider === provider && logged.config.model === model
  const effort = settings.reasoningEffort ?? (same ? withoutDefaults(logged).reasoningEffort : undefined)
  return {
    provider,
    model,
    ...(effort === undefined ? {} : { reasoningEffort: effort }),
    ...(settings.maxTokens === undefined ? {} : { maxTokens: settings.maxTokens }),
  }
}

function withoutDefaults({ config, adapterDefaults }: RequestHeader): LlmCallConfig {
  const { reasoningEffort, maxTokens, ...rest } = config
  return {
    ...rest,
    ...(reasoningEffort === undefined || adapterDefaults?.reasoningEffort ? {} : { reasoningEffort }),
    ...(maxTokens === undefined || adapterDefaults?.maxTokens ? {} : { maxTokens }),
  }
}

function headerOf({ config, adapterDefaults }: PreparedCall, prompt: Prompt): RequestHeader {
  return Object.freeze({
    config,
    ...(adapterDefaults === undefined ? {} : { adapterDefaults }),
    ...(prompt.system ? { system: prompt.system } : {}),
    ...(prompt.tools.length > 0 ? { tools: prompt.tools } : {}),
  })
}

/** Logged at a process's first request, and then whenever it differs. */
function logHeader(runtime: AgentRuntime, header: RequestHeader): void {
  const logged = runtime.session.requestHeader
  const same = logged !== null && equalJson(logged as unknown as Json, header as unknown as Json)
  if (runtime.headerLogged && same) return
  const reason = logged === null ? 'initial' : runtime.headerLogged ? 'change' : 'resume'
  // Checked here and not copied: its tools, which may be many, are the agent's own.
  const wrong = requestHeader(header as unknown as Json)
  if (wrong !== undefined) throw new InvalidEvent(`request/header: data.header${wrong}`)
  runtime.appendOwn({ type: 'request/header', data: { header, reason } })
  runtime.headerLogged = true
}

function logContext(runtime: AgentRuntime, { config, contextWindow, price }: PreparedCall): void {
  const { provider, model } = config
  const data = {
    provider,
    model,
    ...(contextWindow === undefined ? {} : { contextWindow }),
    ...(price === undefined ? {} : { price }),
  }
  const logged = runtime.session.requestContext
  if (logged !== null && equalJson(logged as unknown as Json, data)) return
  runtime.append({ type: 'request/context', data })
}
