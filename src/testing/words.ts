/** A path in words: what is out of the ordinary on it, where, and how its turns end. */
import { phaseOf } from '../machines/agent.ts'
import { isStreaming, isWaiting, type LoopState } from './loop-state.ts'
import type { PathInput } from './path-input.ts'

/** An input, and the state it comes in. */
export interface Scene {
  readonly input: PathInput
  readonly before: LoopState
}

/** `steer while the model is asked, then reject on step 2: blocked`. */
export function describePath(scenes: readonly Scene[], ends: readonly string[]): string {
  const told = scenes.slice(1).flatMap((scene) => describeInput(scene) ?? [])
  const story = told.length > 0 ? told.join(', then ') : 'one plain turn'
  return ends.length > 0 ? `${story}: ${ends.join(', ')}` : story
}

/** Undefined for what any path has. */
function describeInput({ input, before }: Scene): string | undefined {
  const at = placeOf(before)
  switch (input.type) {
    case 'followup':
    case 'steer':
    case 'inject':
      return `${input.type} ${at}`
    case 'cancel':
      return `cancel ${at}${input.keepInbox ? ' keeping the inbox' : ''}`
    case 'approve':
      return `${toolNamed(before, input)} approved`
    case 'deny':
      return `${toolNamed(before, input)} refused`
    case 'remove':
      return `${input.id} removed ${at}`
    case 'clear':
      return `inbox cleared ${at}`
    case 'wake':
      return 'wake'
    case 'crash':
      return `crash ${at}${input.recovery === 'interrupt' ? ' that interrupts' : ''}${input.cancel ? ' with a cancel posted' : ''}`
    case 'suspend':
    case 'fork':
      return `${input.type} ${at}`
    default:
      return describeAnswer(input, before)
  }
}

type Answer = Exclude<
  PathInput,
  {
    readonly type:
      | 'followup'
      | 'steer'
      | 'inject'
      | 'cancel'
      | 'approve'
      | 'deny'
      | 'remove'
      | 'clear'
      | 'wake'
      | 'crash'
      | 'suspend'
      | 'fork'
  }
>

function describeAnswer(input: Answer, before: LoopState): string | undefined {
  const step = before.context.step + (before.value === 'preStep' ? 1 : 0)
  switch (input.type) {
    case 'prepared':
      return PREPARED[input.decision] && `${PREPARED[input.decision]} step ${step}`
    case 'answered': {
      const tools = input.calls.map(({ tool }) => tool).join(' and ')
      const cut = input.finish === 'max-tokens' ? `max-tokens on step ${step}` : undefined
      return tools === '' ? cut : `${tools} on step ${step}${input.limited ? ' over the limit' : ''}`
    }
    case 'request-fails':
      return `${input.retryable ? 'retry' : 'failed request'} on step ${step}`
    case 'error-handled':
      return input.decision && JUDGED[input.decision]
    case 'denied':
    case 'asked':
      return `${toolNamed(before, input)} ${input.type === 'denied' ? 'denied' : 'asked about'}`
    case 'settled':
      if (input.judged !== undefined) return `${toolNamed(before, input)} ${POST[input.judged]}`
      return SETTLED[input.outcome] && `${toolNamed(before, input)} ${SETTLED[input.outcome]}`
    case 'expired':
      return `approval of ${toolNamed(before, input)} expired`
    case 'probed':
      return `${toolNamed(before, input)} found ${input.answer}`
    case 'stopping':
      return STOPPING[input.decision]
    case 'settle-timeout':
      return 'nothing settles'
    case 'actor-fails':
      return `${typeof input.actor === 'string' ? input.actor : `the actor of ${toolNamed(before, input.actor)}`} throws`
    default:
      return undefined
  }
}

const PREPARED = {
  enter: undefined,
  'enter-none': 'nothing enters',
  reject: 'reject on',
  fail: 'a hook throws before',
} as const

const SETTLED = {
  ok: undefined,
  error: 'fails',
  concludes: 'concludes the turn',
  adds: 'adds a message',
} as const

const JUDGED = { retry: 'tried again by a hook', 'give-up': 'given up by a hook', fail: 'a hook throws' } as const

const POST = { block: 'blocked', fail: 'fails by a hook that throws' } as const

const STOPPING = { none: undefined, stop: 'stopped by policy', fail: 'a hook throws while stopping' } as const

const toolNamed = ({ context }: LoopState, { callId }: { readonly callId: string }): string =>
  context.calls.find((call) => call.callId === callId)?.name ?? callId

function placeOf(state: LoopState): string {
  const { value, context, asked } = state
  const under = context.cancel !== null && value !== 'idle' ? ' under a cancel' : ''
  if (value === 'idle') return 'at rest'
  if (value === 'preStep') return `before step ${context.step + 1}${under}`
  if (value === 'turnStopping') return `while stopping${under}`
  if (isWaiting(state)) return 'while waiting to retry'
  if (isStreaming(state)) return `while ${typeof asked === 'object' ? 'a failure is judged' : MODEL[asked]}${under}`
  const doing = context.calls.flatMap((call) => {
    const phase = phaseOf(call)
    return phase === undefined ? [] : [`${call.name} is ${phase}`]
  })
  return `while ${doing.join(' and ')}${under}`
}

const MODEL = { silent: 'the model is asked', spoke: 'the model speaks' } as const
