/** Simulated hooks: they pass on, take their time, refuse, throw, hang, and answer what is no answer. */
import type { TurnEndReason } from '../../../src/log/events.ts'
import type { StreamChunk } from '../../../src/log/messages.ts'
import type { Hooks } from '../../../src/services/hooks/contract.ts'
import type { Truth } from './mirror.ts'
import { never, type SimProcess } from './world.ts'

/** A handler that may go wrong in every way, and else decides as `decides` says. */
interface Handler<R> {
  readonly name: string
  readonly signal: AbortSignal
  readonly next: () => Promise<R>
  /** Other answers than that of `next`. */
  readonly decides: readonly (() => R | Promise<R>)[]
}

const NONSENSE: readonly unknown[] = [undefined, null, 'nonsense', 7, {}, { kind: 'nonsense' }, { kind: 'enter' }, []]

/** Some of the hooks, each with some chance of being there. */
export function simulatedHooks(truth: Truth, process: SimProcess): Partial<Hooks> {
  const { world } = truth
  const handled = <R>(handler: Handler<R>): R | Promise<R> => handle(truth, process, handler)
  const stopping = (handler: Handler<undefined | TurnEndReason>) => handled(handler)
  const all: Partial<Hooks> = {
    'agent/pre-step': ({ messages, signal }, next) =>
      handled({
        name: 'agent/pre-step',
        signal,
        next,
        decides: [
          () => ({ kind: 'reject', reason: 'Not today' }),
          () => ({ kind: 'reject' }),
          () => ({ kind: 'enter', messages: messages.slice(1) }),
          () => ({ kind: 'enter', messages: [] }),
          () => ({ kind: 'enter', messages: [...messages, added(world.id('hook'))] }),
        ],
      }),
    'system-prompt/assemble': ({ signal }, next) =>
      handled({ name: 'system-prompt/assemble', signal, next, decides: [() => ({ system: 'Another', tools: [] })] }),
    'agent/request': ({ config, signal }, next) =>
      handled({ name: 'agent/request', signal, next, decides: [() => ({ ...config, temperature: 0.5 })] }),
    'agent/request-error': ({ signal }, next) =>
      handled({
        name: 'agent/request-error',
        signal,
        next,
        decides: [() => undefined, () => (world.calm ? undefined : { kind: 'retry' })],
      }),
    'agent/turn-stopping': ({ signal }) =>
      stopping({
        name: 'agent/turn-stopping',
        signal,
        next: async () => undefined,
        decides: [() => ({ kind: 'stopped-by-policy', policy: 'a policy' }), () => ({ kind: 'completed' })],
      }),
    'tools/pre-execute': ({ signal }, next) =>
      handled({
        name: 'tools/pre-execute',
        signal,
        next,
        decides: [() => ({ kind: 'deny', reason: 'No' }), () => ({ kind: 'ask' })],
      }),
    'tools/execute': ({ signal }, next) =>
      handled({
        name: 'tools/execute',
        signal,
        next,
        decides: [() => ({ kind: 'ok', value: 1, content: [] }), () => ({ kind: 'error', text: 'A hook says no' })],
      }),
    'tools/post-execute': ({ signal }, next) =>
      handled({
        name: 'tools/post-execute',
        signal,
        next,
        decides: [
          () => ({ kind: 'accept', contexts: ['A context of a hook'] }),
          () => ({ kind: 'block', feedback: 'Blocked' }),
          () => ({ kind: 'accept', value: 'another' }),
        ],
      }),
    'llm/stream': (_, next) => streamed(truth, next),
  }
  const names = Object.keys(all) as (keyof Hooks)[]
  const share = world.tape.pick([0, 0.2, 0.6])
  return Object.fromEntries(names.filter(() => world.tape.chance(share)).map((name) => [name, all[name]]))
}

const added = (id: string) =>
  ({ id, role: 'user', content: [{ type: 'text', text: 'A hook adds' }], source: { kind: 'user' } }) as const

function handle<R>(truth: Truth, process: SimProcess, { name, signal, next, decides }: Handler<R>): R | Promise<R> {
  const { world } = truth
  if (world.calm) return next()
  const { tape } = world
  const later = async (deaf: boolean): Promise<void> => {
    const went = await world.turn(process, `${name} answers`, deaf ? {} : { signal })
    if (went === 'aborted') throw signal.reason
  }
  const kind = tape.weighted([
    [60, 'passes on'],
    [12, 'later'],
    [12, 'decides'],
    [4, 'ignores its signal'],
    [3, 'throws'],
    [3, 'hangs'],
    [3, 'nonsense'],
    [2, 'throws at once'],
    [1, 'asks twice'],
  ] as const)
  if (kind !== 'passes on') world.count(`hook ${kind}`)
  switch (kind) {
    case 'later':
    case 'ignores its signal':
      return later(kind !== 'later').then(next)
    case 'decides':
      return tape.pick(decides)()
    case 'throws':
      return later(false).then(() => Promise.reject(new Error('A hook failed')))
    case 'throws at once':
      throw new Error('A hook threw')
    case 'hangs':
      return tape.chance(0.5) ? never() : later(false).then(() => never())
    case 'nonsense':
      return tape.pick(NONSENSE) as R
    case 'asks twice':
      return next().then(next)
    default:
      return next()
  }
}

/** Around the model's stream: passes on, or breaks. */
async function* streamed(truth: Truth, next: () => AsyncIterable<StreamChunk>): AsyncGenerator<StreamChunk> {
  const { world } = truth
  const breaks = world.mishap('stream hook', 0.1)
  for await (const chunk of next()) {
    if (breaks) throw new Error('The stream hook failed')
    yield chunk
  }
}
