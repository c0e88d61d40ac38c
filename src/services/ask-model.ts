/** Actor: one attempt of a request. Every chunk is logged before it counts. */
import { parseArguments } from '../log/arguments.ts'
import { MAX_EVENT_BYTES, type PlannedCall, type Retry } from '../log/events.ts'
import { utf8Bytes } from '../log/json.ts'
import type { AssistantMessage, LlmFailure, StreamChunk, ToolCallBlock } from '../log/messages.ts'
import type { LlmRequest } from '../log/requests.ts'
import type { Session } from '../log/session.ts'
import { type Service, serviceActor } from './actor.ts'
import { eitherOf } from './either-of.ts'
import { LlmError } from './errors.ts'
import { callHook } from './hooks/failure.ts'
import { hookedStream } from './hooks/stream.ts'
import type { AskModelInput } from './inputs.ts'
import type { ModelAdapter } from './llm/adapter.ts'
import { type Assembler, assemble, createAssembler, interruptedPrefix } from './llm/assembler.ts'
import { ownChunk } from './llm/chunk.ts'
import { createStreamMask } from './llm/mask-stream.ts'
import { spendChunk, spendRequest } from './llm/pace.ts'
import { assemblePrompt } from './llm/prompt.ts'
import { buildRequest } from './llm/request.ts'
import { completePolicy, planRetry } from './llm/retry.ts'
import { type AfterChunk, contained, drain, drainContained } from './llm/stream.ts'
import type { AgentRuntime, OpenTurn } from './runtime.ts'
import type { Answer, Verdict } from './verdicts.ts'

export const askModel = serviceActor<AskModelInput>(run, (input, failure) => failed(input, failure))

const attemptOf = ({ turn, step, attempt }: AskModelInput) => ({ turn, step, attempt })

const failed = (input: AskModelInput, failure: LlmFailure): Verdict => ({
  type: 'verdict.failed',
  ...attemptOf(input),
  failure,
})

/** One attempt's stream as it is taken in. */
interface Taken {
  readonly assembler: Assembler
  readonly chunkSeqs: number[]
}

async function run(service: Service<AskModelInput>): Promise<Verdict> {
  const { input, runtime } = service
  const { turn } = runtime
  // The turn's signal ends the request; so does closing, which leaves the turn open.
  const { abort, release } = eitherOf(turn.cancel, runtime.closing.starts)
  const { signal } = abort
  const aborted = (partial?: Answer): Verdict => ({
    type: 'verdict.aborted',
    ...attemptOf(input),
    ...(partial === undefined ? {} : { partial }),
  })
  try {
    signal.throwIfAborted()
    const prompt = await promptOf(runtime, turn, input)
    signal.throwIfAborted()
    const { request, adapter } = await buildRequest(runtime, input, { prompt, signal })
    await runtime.session.flush()
    if (signal.aborted) return aborted()
    const taken: Taken = { assembler: createAssembler(), chunkSeqs: [] }
    turn.partial = () => partialOf(runtime, request, taken)
    await takeIn(service, { request, adapter, signal }, taken)
    const { finish } = taken.assembler
    if (signal.aborted && finish?.kind !== 'error') return aborted(partialOf(runtime, request, taken))
    // No prefix any more: an answer is told whole by its verdict, and of a failed attempt nothing is kept.
    turn.partial = undefined
    return await concluded(runtime, input, { request, adapter, taken })
  } catch (thrown) {
    // A stream that throws at the abort ended by it, like any other: what it had said is kept.
    if (signal.aborted && !runtime.session.failed.aborted) return aborted(turn.partial?.())
    throw thrown
  } finally {
    turn.partial = undefined
    release()
  }
}

/** The prompt the step was prepared with; after a crash it is assembled anew. */
async function promptOf(runtime: AgentRuntime, open: OpenTurn, { turn, step }: AskModelInput) {
  const known = open.prompt
  if (known?.step === step) return known.prompt
  const prompt = await assemblePrompt(runtime, turn, step)
  open.prompt = { step, prompt }
  return prompt
}

type Asked = { readonly request: LlmRequest; readonly adapter: ModelAdapter | undefined }

async function takeIn(
  { input, runtime, stopped }: Service<AskModelInput>,
  { request, adapter, signal }: Asked & { readonly signal: AbortSignal },
  taken: Taken,
): Promise<void> {
  const { session } = runtime
  const { assembler, chunkSeqs } = taken
  const digest = runtime.digester.digest(request)
  const masked = createStreamMask(runtime.mask, (name) => runtime.tools.has(name))
  const log = (chunk: StreamChunk): void => {
    const { seq, data } = runtime.appendChunk(input, chunk, chunkSeqs.length === 0 ? digest : undefined)
    chunkSeqs.push(seq)
    assembler.push(data.chunk)
  }
  spendRequest()
  let finished = false
  const take = (given: StreamChunk): AfterChunk => {
    if (signal.aborted) return 'over'
    const chunk = ownChunk(given)
    for (const shown of masked.push(chunk)) log(shown)
    if (chunk.type === 'finish') {
      finished = true
      return 'over'
    }
    if (bytesOf(taken) + masked.held > MAX_ANSWER_BYTES) throw new LlmError(RESPONSE_TOO_LARGE)
    const turn = spendChunk(charactersOf(chunk))
    return session.queuedBytes > READY_BYTES ? roomAfter(session, turn) : turn
  }
  if (runtime.hooks.has('llm/stream')) {
    const core = () => contained(adapter, request, signal)
    const { turn, step } = input
    const end = await drain(() => hookedStream(runtime, { turn, step }, { request, signal }, core), signal, take)
    if (end.kind === 'threw') throw end.thrown
  } else await drainContained(adapter, request, { signal, take })
  if (finished) return
  // What was held belongs to what the reader has seen, unless nobody takes it any more.
  if (!stopped.aborted && !runtime.closing.aborted && !session.failed.aborted) masked.release().forEach(log)
}

/** More than this waits for the store: the session is asked whether it has room. */
const READY_BYTES = 262_144

async function roomAfter(session: Session, turn: Promise<void> | undefined): Promise<void> {
  await turn
  await session.ready()
}

const charactersOf = (chunk: StreamChunk): number => ('text' in chunk ? chunk.text.length : 0)

async function concluded(
  runtime: AgentRuntime,
  input: AskModelInput,
  { request, adapter, taken }: Asked & { readonly taken: Taken },
): Promise<Verdict> {
  const assembled = assemble(taken.assembler, {
    newCallId: () => `call-${runtime.newId()}`,
    isUsed: (id) => runtime.session.hasCallId(id),
  })
  if (assembled.kind === 'failed') return failedAttempt(runtime, input, { request, adapter }, assembled.failure)
  const { content, calls, finish, usage, replayState } = assembled
  const message: AssistantMessage = {
    id: runtime.newId(),
    role: 'assistant',
    content,
    source: sourceOf(request, replayState),
  }
  const answer: Answer = { message, finish, chunkSeqs: taken.chunkSeqs, ...(usage === undefined ? {} : { usage }) }
  const plans = calls.map((call) => planned(runtime, call))
  if (bytesOf(taken) > SURELY_FITS && isTooLarge(answer, plans)) return failed(input, RESPONSE_TOO_LARGE)
  const bound = boundReached(runtime, calls)
  return {
    type: 'verdict.answered',
    ...attemptOf(input),
    answer,
    calls: plans,
    ...(bound === undefined ? {} : { bound }),
  }
}

function boundReached({ limits, repeats, clock }: AgentRuntime, calls: readonly ToolCallBlock[]) {
  const limit = limits?.reached(clock.now())
  if (limit !== undefined) return { kind: 'limit', limit } as const
  const repeated = repeats?.stops(calls)
  return repeated && ({ kind: 'repeated-call', ...repeated } as const)
}

/** Room in one event for the rest of it: its place, the message's source. */
const MAX_ANSWER_BYTES = MAX_EVENT_BYTES - 65_536
const SEQ_BYTES = 9

/** Of a stream so far. Told while it comes, so that one without end is not kept without end. */
const bytesOf = ({ assembler, chunkSeqs }: Taken): number => assembler.bytes + chunkSeqs.length * SEQ_BYTES

const isTooLarge = ({ chunkSeqs, ...said }: Answer, calls: readonly PlannedCall[]): boolean =>
  utf8Bytes(JSON.stringify([said, calls])) + chunkSeqs.length * SEQ_BYTES > MAX_ANSWER_BYTES

/** What was counted by its characters may take six times as many bytes, and names stand there twice. */
const SURELY_FITS = 65_536

const RESPONSE_TOO_LARGE: LlmFailure = {
  code: 'RESPONSE_TOO_LARGE',
  message: 'The answer is larger than one event of the log may be',
}

const sourceOf = ({ provider, model }: LlmRequest, replayState?: AssistantMessage['source']['replayState']) => ({
  kind: 'model' as const,
  provider,
  model,
  ...(replayState === undefined ? {} : { replayState }),
})

/** Classified once, here: what the tool becomes later changes no batch that was scheduled. */
function planned({ tools }: AgentRuntime, { id, name, arguments: raw }: ToolCallBlock): PlannedCall {
  const parsed = parseArguments(raw)
  const mode = parsed.kind === 'parsed' ? tools.get(name)?.modeOf(parsed.args) : undefined
  return { callId: id, name, mode: mode === 'parallel' ? mode : 'exclusive' }
}

function partialOf(runtime: AgentRuntime, request: LlmRequest, { assembler, chunkSeqs }: Taken): Answer | undefined {
  const content = interruptedPrefix(assembler)
  if (content.length === 0) return undefined
  return {
    message: { id: runtime.newId(), role: 'assistant', content, source: sourceOf(request) },
    finish: { kind: 'aborted', failure: { code: 'ABORTED', message: 'The turn was cancelled' } },
    chunkSeqs: [...chunkSeqs],
    ...(assembler.usage === undefined ? {} : { usage: assembler.usage }),
  }
}

/** The hook decides, the planner at its core: it plans a retry, somebody else takes one over, or the failure stands. */
async function failedAttempt(
  runtime: AgentRuntime,
  input: AskModelInput,
  { request, adapter }: Asked,
  failure: LlmFailure,
): Promise<Verdict> {
  const { turn, step, attempt, chain } = input
  const limit = runtime.limits?.reached(runtime.clock.now())
  if (limit !== undefined) {
    runtime.stopFor({ kind: 'limit', limit })
    return failed(input, failure)
  }
  const policy = completePolicy(runtime.settings.retry ?? adapter?.retry)
  const { signal } = runtime.turn
  const payload = { turn, step, attempt, provider: request.provider, failure, retryPolicy: policy, signal }
  let plan: Retry | undefined
  const decided = await callHook(runtime, 'agent/request-error', { turn, step }, payload, async () => {
    plan = planRetry({
      policy,
      provider: request.provider,
      failure,
      chain,
      newId: runtime.newId,
      random: runtime.random,
    })
    return plan === undefined ? undefined : { kind: 'retry' as const }
  })
  if (decided?.kind !== 'retry') return failed(input, failure)
  return {
    type: 'verdict.retry',
    ...attemptOf(input),
    retry: plan ?? adopted(runtime, request.provider, failure, chain),
  }
}

/** A hook asked for another attempt where the planner would not: it starts at once, and is logged like any other. */
const adopted = (
  { newId }: AgentRuntime,
  provider: string,
  failure: LlmFailure,
  chain: AskModelInput['chain'],
): Retry => ({
  retryId: chain?.policyKey === ADOPTED ? chain.retryId : newId(),
  provider,
  policyKey: ADOPTED,
  retry: chain?.policyKey === ADOPTED ? chain.retry + 1 : 1,
  delayMs: 0,
  failure,
  mode: 'always',
})

const ADOPTED = '["hook"]'
