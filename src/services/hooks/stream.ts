/** The `llm/stream` hooks around a model's stream: each may change it, none may ask twice or give what is no chunk. */
import { toJson } from '../../log/json.ts'
import type { StreamChunk } from '../../log/messages.ts'
import { streamChunk } from '../../log/shapes.ts'
import { HookMisuse } from '../errors.ts'
import type { AgentRuntime } from '../runtime.ts'
import type { Hooks } from './contract.ts'
import { type Position, traced } from './failure.ts'

const HOOK = 'llm/stream'

type Handler = Hooks[typeof HOOK]
type Payload = Parameters<Handler>[0]
type Core = () => AsyncIterable<StreamChunk>

/**
 * The chunks as the hooks give them; without hooks those of `core`, which throws nothing. What a handler throws, or
 * gives that is no chunk, is recorded as `agent/hook-failed` and goes on.
 */
export function hookedStream(
  runtime: AgentRuntime,
  at: Position,
  payload: Payload,
  core: Core,
): AsyncIterable<StreamChunk> {
  const handlers = runtime.hooks.of(HOOK)
  if (handlers.length === 0) return core()
  const ofCore = new WeakSet<StreamChunk>()
  const innermost: Core = () => noted(core(), ofCore)
  return watched(runtime, at, () => compose(handlers, Object.freeze(payload), innermost), ofCore)
}

/** The first registered is the outermost. */
const compose = (handlers: readonly Handler[], payload: Payload, core: Core): AsyncIterable<StreamChunk> =>
  handlers.reduceRight<Core>((next, handler) => () => handler(payload, once(next)), core)()

function once(next: Core): Core {
  let called = false
  return () => {
    if (called) throw new HookMisuse(HOOK, 'next() was called twice: call it once and keep what it gave')
    called = true
    return next()
  }
}

/** What the model itself said is not a hook's to answer for. */
async function* noted(chunks: AsyncIterable<StreamChunk>, seen: WeakSet<StreamChunk>): AsyncGenerator<StreamChunk> {
  for await (const chunk of chunks) {
    if (typeof chunk === 'object' && chunk !== null) seen.add(chunk)
    yield chunk
  }
}

async function* watched(
  runtime: AgentRuntime,
  at: Position,
  open: Core,
  ofCore: WeakSet<StreamChunk>,
): AsyncGenerator<StreamChunk, void, void> {
  const trace = traced(runtime, HOOK, at)
  try {
    for await (const chunk of asStream(open())) {
      if (!ofCore.has(chunk)) assertChunk(chunk)
      yield chunk
    }
  } catch (thrown) {
    trace(thrown)
    throw thrown
  }
}

function asStream(given: unknown): AsyncIterable<StreamChunk> {
  if (typeof given === 'object' && given !== null && Symbol.asyncIterator in given) {
    return given as AsyncIterable<StreamChunk>
  }
  throw new HookMisuse(HOOK, 'it must give an async iterable of chunks, such as what next() gives')
}

/** @throws HookMisuse, NotJson */
function assertChunk(chunk: unknown): void {
  const wrong = streamChunk(toJson(chunk))
  if (wrong !== undefined) throw new HookMisuse(HOOK, `a chunk it gave is none: chunk${wrong}`)
}
