/** What a simulated model says: plans of chunks, drawn one a request, from a plain answer to garbage. */
import type { FinishReason, LlmFailure, StreamChunk } from '../../../src/log/messages.ts'
import { TOOL_NAMES } from './tools.ts'
import type { World } from './world.ts'

/** One thing a stream does. `hang`: nothing more, ever. */
export type Move =
  | { readonly kind: 'chunk'; readonly chunk: StreamChunk }
  | { readonly kind: 'throw'; readonly error: unknown }
  | { readonly kind: 'hang' }

export interface Plan {
  readonly name: string
  readonly moves: readonly Move[]
  /** Breaks the grammar of streams. */
  readonly garbled?: true
}

const say = (chunk: StreamChunk): Move => ({ kind: 'chunk', chunk })
const finish = (reason: FinishReason): Move => say({ type: 'finish', reason })
const stop = finish({ kind: 'stop' })
const calls = finish({ kind: 'tool-calls' })
const usage = say({ type: 'usage', usage: { inputTokens: 7, outputTokens: 3 } })

const failing = (failure: Partial<LlmFailure>): Move =>
  finish({ kind: 'error', failure: { code: 'SERVER', message: 'The model is down', ...failure } })

function words(index: number, text: string, blockType: 'text' | 'reasoning' = 'text'): readonly Move[] {
  return [
    say({ type: 'block-start', index, blockType }),
    say({ type: `${blockType}-delta`, index, text }),
    say({ type: 'block-end', index, block: { type: blockType, text } }),
  ]
}

interface CallWords {
  readonly id: string
  readonly name: string
  readonly raw: string
}

function asked(index: number, { id, name, raw }: CallWords): readonly Move[] {
  return [
    say({ type: 'block-start', index, blockType: 'tool-call' }),
    say({ type: 'tool-call-delta', index, id, name, argumentsDelta: raw }),
    say({ type: 'block-end', index, block: { type: 'tool-call', id, name, arguments: raw } }),
  ]
}

/** Calls of tools that are there, with arguments they take, unless chance has it otherwise. */
function callsOf(world: World): readonly Move[] {
  const { tape } = world
  const ids: string[] = []
  const one = (index: number): readonly Move[] => {
    const fresh = world.id('c')
    const id = world.mishap('call id', 0.08) ? tape.pick([ids[0] ?? '', 'c-same', '']) : fresh
    ids.push(id)
    const name = world.mishap('unknown tool', 0.04) ? 'nobody' : tape.pick(TOOL_NAMES)
    const raw = world.mishap('broken arguments', 0.05)
      ? tape.pick(['{"n":', '[]', '{"n":"one"}', ''])
      : JSON.stringify({ n: tape.below(64) })
    return asked(index, { id, name, raw })
  }
  const count = 1 + tape.below(tape.chance(0.1) ? 6 : 3)
  const before = tape.chance(0.5) ? words(0, 'Let me see.') : []
  const asks = Array.from({ length: count }, (_, index) => one(index + 1)).flat()
  return [...before, ...asks, usage, calls]
}

/** A stream that breaks the grammar; the answer that comes of it, if any, is logged all the same. */
function garbage(world: World): readonly Move[] {
  const delta = say({ type: 'text-delta', index: 3, text: 'from nowhere' })
  const raw = { id: world.id('c'), name: 'look', raw: '{"n":1}' }
  return world.tape.pick<readonly Move[]>([
    [delta, stop],
    [...words(0, 'twice'), ...words(0, 'twice'), stop],
    [...words(0, 'two ends'), stop, stop],
    [say({ type: 'block-start', index: 0, blockType: 'text' }), stop],
    [say({ type: 'block-end', index: 0, block: { type: 'text', text: 'no start' } }), stop],
    [stop, usage],
    [usage, usage, ...asked(0, raw), stop],
    [say({ type: 'block-start', index: 0, blockType: 'x/odd' }), stop],
    [say({ type: 'tool-call-delta', index: 0, argumentsDelta: '{"n":2}' }), calls],
    [...asked(0, raw), finish({ kind: 'max-tokens' })],
    [say({ type: 'reasoning-delta', index: 0, text: 'hm' }), delta, calls],
    [say({ type: 'nonsense' } as unknown as StreamChunk), stop],
    [say(null as unknown as StreamChunk), stop],
    [say({ type: 'text-delta', index: -1, text: 4 } as unknown as StreamChunk), stop],
    [say({ type: 'finish' } as unknown as StreamChunk)],
  ])
}

const FAILURES: readonly Partial<LlmFailure>[] = [
  {},
  { code: 'RATE_LIMIT', providerRetryAfterMs: 2_000 },
  { code: 'RATE_LIMIT', providerRetryAfterMs: 3_600_000 },
  { code: 'AUTH' },
  { code: 'INVALID_REQUEST', status: 400 },
  { code: 'TIMEOUT' },
]

const plain = (world: World): Plan => ({ name: 'answers', moves: [...words(0, world.id('answer ')), usage, stop] })

/** Chunks until somebody stops it, or until it is too large for an event. */
const endless = (size: number, count: number): readonly Move[] => [
  say({ type: 'block-start', index: 0, blockType: 'text' }),
  ...Array.from({ length: count }, () => say({ type: 'text-delta', index: 0, text: 'x'.repeat(size) })),
]

/** What the model does with this request. */
export function planOf(world: World): Plan {
  if (world.calm) return plain(world)
  const { tape } = world
  const kind = tape.weighted([
    [30, 'answers'],
    [42, 'calls'],
    [6, 'fails'],
    [5, 'garbled'],
    [3, 'fails in the middle'],
    [2, 'hangs'],
    [2, 'cut short'],
    [2, 'max-tokens'],
    [2, 'ends early'],
    [2, 'throws'],
    [1, 'empty'],
    [1, 'endless'],
    [1, 'too large'],
  ] as const)
  if (kind !== 'answers' && kind !== 'calls') world.count(`fault model ${kind}`)
  return { name: kind, ...movesOf(world, kind) }
}

function movesOf(world: World, kind: string): Omit<Plan, 'name'> {
  const { tape } = world
  switch (kind) {
    case 'calls':
      return { moves: callsOf(world) }
    case 'fails':
      return { moves: [failing(tape.pick(FAILURES))] }
    case 'fails in the middle':
      return { moves: [...words(0, 'half of it'), failing(tape.pick(FAILURES))] }
    case 'garbled':
      return { moves: garbage(world), garbled: true }
    case 'hangs':
      return { moves: [...(tape.chance(0.5) ? words(0, 'and then') : []), { kind: 'hang' }] }
    case 'cut short':
      return { moves: [...words(0, 'a'), ...words(1, 'b', 'reasoning'), finish({ kind: 'max-tokens' })] }
    case 'max-tokens':
      return {
        moves: [say({ type: 'text-delta', index: 0, text: 'cut' }), finish({ kind: 'max-tokens' })],
        garbled: true,
      }
    case 'ends early':
      return { moves: words(0, 'no finish') }
    case 'throws':
      return { moves: [{ kind: 'throw', error: tape.pick([new Error('The model threw'), 'not an error', undefined]) }] }
    case 'empty':
      return { moves: [stop] }
    case 'endless':
      return { moves: [...endless(8, 40), { kind: 'hang' }] }
    case 'too large':
      return { moves: endless(200_000, 12) }
    default:
      return plain(world)
  }
}
