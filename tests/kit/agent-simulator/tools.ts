/** Simulated tools: each kind of recovery, with bodies that do anything a body may do wrong. */

import { PawlError } from '../../../src/log/errors.ts'
import type { OnCrash } from '../../../src/log/events.ts'
import type { ProbeAnswer, ProbeContext, Tool, ToolContext } from '../../../src/services/tools/contract.ts'
import { tool } from '../../../src/services/tools/tool.ts'
import type { Truth } from './mirror.ts'
import { never, type SimProcess } from './world.ts'

const parameters = {
  type: 'object',
  properties: { n: { type: 'number' } },
  required: ['n'],
  additionalProperties: false,
} as const

const described = { description: 'Does something', parameters, execute: () => 'never called' }
const numberIn = (args: unknown): number =>
  typeof args === 'object' && args !== null && 'n' in args && typeof args.n === 'number' ? args.n : 0

/** Made once: compiling a schema takes longer than a whole call. The world provides bodies and probes. */
const TOOLS: readonly Tool[] = [
  tool({ ...described, name: 'look', mode: 'parallel', onCrash: 'rerun' }),
  tool({ ...described, name: 'send' }),
  tool({ ...described, name: 'fetch', mode: 'parallel', timeoutMs: 1_000, repeatable: true }),
  tool({ ...described, name: 'pay', mode: 'parallel', onCrash: 'ask', approvalExpiresMs: 60_000 }),
  tool({ ...described, name: 'book', onCrash: async () => ({ kind: 'unknown' }) }),
  tool({
    ...described,
    name: 'order',
    mode: (args) => (numberIn(args) % 2 === 0 ? 'parallel' : 'exclusive'),
    onCrash: 'ask',
    needsApproval: (args) => numberIn(args) % 3 !== 0,
  }),
  tool({ ...described, name: 'ask', mode: 'parallel', needsApproval: true, approvalExpiresMs: 5_000 }),
]

export const TOOL_NAMES: readonly string[] = TOOLS.map(({ name }) => name)

/** The tools of an agent in that process. A new release of one may see crashes otherwise than the log does. */
export function simulatedTools(truth: Truth, process: SimProcess): readonly Tool[] {
  const changed = truth.world.mishap('another onCrash', 0.05)
  return TOOLS.map((made) => ({
    ...made,
    ...(changed && made.name === 'look' ? { onCrash: 'unknown' as const } : {}),
    execute: (_: unknown, context: ToolContext) => runBody(truth, process, context),
    ...(made.onCrash === 'probe' ? { probe: (context: ProbeContext) => probe(truth, process, context) } : {}),
  }))
}

function runBody(truth: Truth, process: SimProcess, context: ToolContext): unknown {
  const { world } = truth
  world.count('bodies')
  checkBody(truth, process, context)
  act(truth, context)
  if (world.calm) return 'done'
  const kind = world.tape.weighted([
    [40, 'answers later'],
    [15, 'answers at once'],
    [6, 'throws later'],
    [4, 'throws at once'],
    [5, 'hangs'],
    [5, 'ignores its signal'],
    [3, 'too large'],
    [4, 'no JSON'],
  ] as const)
  if (!kind.startsWith('answers')) world.count(`fault tool ${kind}`)
  return behave(truth, process, context, kind)
}

async function later(truth: Truth, process: SimProcess, { callId, signal }: ToolContext, deaf = false): Promise<void> {
  const went = await truth.world.turn(process, `tool ${callId} settles`, deaf ? {} : { signal })
  if (went === 'aborted') throw signal.reason
}

function behave(truth: Truth, process: SimProcess, context: ToolContext, kind: string): unknown {
  const { tape } = truth.world
  switch (kind) {
    case 'answers later':
      return later(truth, process, context).then(() => ({ ok: true }))
    case 'throws later':
      return later(truth, process, context).then(() => Promise.reject(new PawlError('The tool failed', 'TOOL_BROKE')))
    case 'throws at once':
      throw tape.pick([new Error('The tool threw'), 'not an error', undefined])
    case 'hangs':
      return tape.chance(0.5) ? never() : whenAborted(context.signal)
    case 'ignores its signal':
      return later(truth, process, context, true).then(() => 'late or not')
    case 'too large':
      return 'x'.repeat(1_100_000)
    case 'no JSON':
      return tape.pick<unknown>([
        1n,
        () => 1,
        Number.NaN,
        { deep: undefined, when: new Date(0) },
        undefined,
        Symbol('s'),
      ])
    default:
      return 'done'
  }
}

const whenAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))

/** What a body may say while it works; refused is refused, and nothing else may come of it. */
function act({ world }: Truth, context: ToolContext): void {
  if (world.calm || !world.tape.chance(0.2)) return
  const what = world.tape.pick(['addContext', 'steer', 'inject', 'concludeTurn', 'progress'] as const)
  world.count(`tool ${what}`)
  if (what === 'concludeTurn') context.concludeTurn()
  else if (what === 'steer' || what === 'inject') context[what](`${what} of ${context.callId}`)
  else context[what](`${what} of ${context.callId}`)
}

/** Its dispatch is durable, it is the only body of that run, and a second run is one that the log allows. */
function checkBody({ world, sessions }: Truth, process: SimProcess, { sessionId, callId, run }: ToolContext): void {
  const session = sessions.get(sessionId)
  if (session === undefined) return void world.breach('BODY-OF-NOBODY', `no session ${sessionId}`)
  const key = `${callId}.${run}`
  const dispatches = session.log.flatMap((event) =>
    event.type === 'tool/dispatch' && event.data.callId === callId ? [event] : [],
  )
  const mine = dispatches.find(({ data }) => data.run === run)
  const why = (what: string) => () => `${sessionId}: body ${key} ${what}`
  world.must(mine !== undefined, 'BODY-BEFORE-DISPATCH', why('began and its dispatch is not in the store'))
  const known = (process.known.get(sessionId) ?? 0) > (mine?.seq ?? 0)
  world.must(known, 'BODY-BEFORE-DISPATCH', why('began before its process knew of its dispatch'))
  world.must(!session.bodies.some((body) => body.key === key), 'BODY-TWICE', why('ran twice'))
  const before = dispatches.find(({ data }) => data.run === run - 1)?.data.onCrash
  const mayAgain: readonly (OnCrash | undefined)[] = ['rerun', 'ask', 'probe']
  world.must(run === 1 || mayAgain.includes(before), 'BODY-AGAIN', why(`again, though its onCrash was ${before}`))
  const inherited = (mine?.seq ?? 0) < (session.header.seedLength ?? 0)
  world.must(!inherited, 'BODY-OF-PARENT', why('ran in a fork, though its parent dispatched it'))
  session.bodies.push({ key, at: session.log.length })
}

async function probe(truth: Truth, process: SimProcess, { callId, signal }: ProbeContext): Promise<ProbeAnswer> {
  const { world } = truth
  const kind = world.tape.pick(['not-done', 'done', 'unknown', 'throws', 'nonsense', 'hangs'] as const)
  world.count(`probe ${kind}`)
  if ((await world.turn(process, `probe of ${callId} says ${kind}`, { signal })) === 'aborted') throw signal.reason
  if (kind === 'throws') throw new Error('The probe threw')
  if (kind === 'nonsense') return 'nonsense' as unknown as ProbeAnswer
  if (kind === 'hangs' && !world.calm) return never()
  return kind === 'done' ? { kind, value: 'as the probe found' } : { kind: kind === 'not-done' ? kind : 'unknown' }
}
