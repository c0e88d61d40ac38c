/** How each input is brought about: by a command of the agent, the clock, or an answer of its surroundings. */
import { actorIdOf, phaseOf } from '../../machines/agent.ts'
import { callOf } from '../../machines/tool-records.ts'
import { type LoopState, settleTime } from '../loop-state.ts'
import type { PathSetup } from '../path.ts'
import type { FailingActor, PathInput } from '../path-input.ts'
import { pathMessage } from '../stimulus.ts'
import type { Life } from './life.ts'

/** What happens to a process as a whole is not done to an agent. */
export type Deed = Exclude<PathInput, { readonly type: 'crash' | 'suspend' | 'fork' }>

type Of<T extends Deed['type']> = Extract<Deed, { readonly type: T }>

/** Brings it about in `state`, now. Resolves with what really happened. @throws what a refused command throws */
export async function perform(life: Life, state: LoopState, input: Deed): Promise<readonly PathInput[]> {
  const { agent, clock, surroundings } = life
  const { context } = state
  switch (input.type) {
    case 'followup':
    case 'steer':
    case 'inject':
      agent[input.type](pathMessage(input.id))
      break
    case 'cancel':
      // Resolves when the turn is over, which is for the path to say.
      agent.cancel({ kind: 'user' }, input.keepInbox ? { keepInbox: true } : {}).catch(() => {})
      break
    case 'approve':
    case 'deny':
      await answerQuestion(life, input)
      break
    case 'remove':
      agent.inbox.remove(input.id)
      break
    case 'clear':
      agent.inbox.clear()
      break
    case 'wake':
      agent.wake()
      break
    case 'waited':
      clock.travel((context.retry?.at ?? 0) + (context.retry?.delayMs ?? 0))
      break
    case 'expired':
      clock.travel(callOf(context, input.callId)?.approval?.expiresAt ?? 0)
      break
    case 'settle-timeout':
      clock.travel(settleTime(state))
      break
    case 'actor-fails': {
      const actorId = actorOf(state, input.actor)
      const error = new Error('The path fails here')
      agent.actor.send({ type: `xstate.error.actor.${actorId}`, error, actorId })
      break
    }
    default:
      return surroundings.answer(questionOf(state, input), input)
  }
  return [input]
}

async function answerQuestion({ agent }: Life, { type, callId, run }: Of<'approve' | 'deny'>): Promise<void> {
  const question = agent.approvals().find((one) => one.callId === callId && one.run === run)
  if (question === undefined) throw new Error(`Nobody asked for approval of run ${run} of ${callId}`)
  await agent[type](callId, { digest: question.argumentsDigest, run })
}

function actorOf({ context }: LoopState, actor: FailingActor): string {
  if (typeof actor === 'string') return actor
  const call = callOf(context, actor.callId)
  return call === undefined || phaseOf(call) === undefined ? 'none' : actorIdOf(call)
}

type Answer = Of<
  | 'prepared'
  | 'answered'
  | 'speaks'
  | 'request-fails'
  | 'error-handled'
  | 'allowed'
  | 'denied'
  | 'asked'
  | 'settled'
  | 'probed'
  | 'stopping'
>

/** The name of the question that an input answers. */
function questionOf({ context }: LoopState, input: Answer): string {
  const { turn, step, attempt } = context
  switch (input.type) {
    case 'prepared':
      return `pre-step ${turn}.${step + 1}`
    case 'answered':
    case 'speaks':
    case 'request-fails':
      return `model ${turn}.${step}.${attempt}`
    case 'error-handled':
      return `request-error ${turn}.${step}.${attempt}`
    case 'allowed':
    case 'denied':
    case 'asked':
      return `pre-execute ${input.callId}`
    case 'settled':
      return `body ${input.callId} ${callOf(context, input.callId)?.run ?? 0}`
    case 'probed':
      return `probe ${input.callId}`
    case 'stopping':
      return `turn-stopping ${turn}.${step}`
  }
}

/** A plain answer to a question of that name, for one that nobody waits for any more; none where a user's tool would run. */
export function inputTo(name: string, { tools }: PathSetup): PathInput | undefined {
  const [kind = '', of = ''] = name.split(' ')
  switch (kind) {
    case 'pre-step':
      return { type: 'prepared', decision: 'enter' }
    case 'request-error':
      return { type: 'error-handled' }
    case 'pre-execute':
      return { type: 'allowed', callId: of }
    case 'body':
      return tools.some(({ tool }) => tool !== undefined) ? undefined : { type: 'settled', callId: of, outcome: 'ok' }
    case 'turn-stopping':
      return { type: 'stopping', decision: 'none' }
    default:
      return undefined
  }
}
