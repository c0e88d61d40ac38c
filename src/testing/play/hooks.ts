/**
 * The hooks of a path: each waits for the path's word. Where that is to go on as usual, a user's own hook is asked, and
 * what it really decided is told back.
 */
import type { AgentContext } from '../../machines/evolve.ts'
import type { Hooks, PreExecute, PreStep } from '../../services/hooks/contract.ts'
import type { PathInput } from '../path-input.ts'
import type { Surroundings } from './surroundings.ts'

export interface PathHooksOptions {
  readonly surroundings: Surroundings
  /** The user's own. */
  readonly own: Partial<Hooks>
  /** The agent's as it is now. */
  context(): AgentContext
}

/** What a hook of a path throws. */
export const thrownByPath = (): Error => new Error('The path fails here')

export const createPathHooks = (options: PathHooksOptions): Partial<Hooks> => ({
  ...options.own,
  'agent/pre-step': preStep(options),
  'agent/request-error': requestError(options),
  'tools/pre-execute': preExecute(options),
  'tools/post-execute': postExecute(options),
  'agent/turn-stopping': turnStopping(options),
})

const preStep =
  ({ surroundings, own }: PathHooksOptions): Hooks['agent/pre-step'] =>
  async (payload, next) => {
    const name = `pre-step ${payload.turn}.${payload.step}`
    const { input, observed } = await surroundings.ask(name, 'prepareStep', ['prepared'])
    if (input.decision !== 'enter') observed(input)
    switch (input.decision) {
      case 'enter-none':
        return { kind: 'enter', messages: [] }
      case 'reject':
        return { kind: 'reject', reason: 'no' }
      case 'fail':
        throw thrownByPath()
      case 'enter': {
        const claimed = payload.messages.map(({ id }) => id)
        const hook = own['agent/pre-step']
        const decide = async () => (hook === undefined ? next() : hook(payload, next))
        return watched(
          () => surroundings.run(decide),
          (decision) => observed(preparedBy(decision, claimed)),
          () => observed({ type: 'prepared', decision: 'fail' }),
        )
      }
    }
  }

function preparedBy(decision: PreStep, claimed: readonly string[]): PathInput {
  if (decision.kind === 'reject') return { type: 'prepared', decision: 'reject' }
  const entered = decision.messages.map(({ id }) => id)
  if (entered.length === claimed.length && entered.every((id, index) => id === claimed[index])) {
    return { type: 'prepared', decision: 'enter' }
  }
  return entered.length === 0
    ? { type: 'prepared', decision: 'enter-none' }
    : { type: 'prepared', decision: 'enter', entered }
}

const requestError =
  ({ surroundings, own }: PathHooksOptions): Hooks['agent/request-error'] =>
  async (payload, next) => {
    const name = `request-error ${payload.turn}.${payload.step}.${payload.attempt}`
    const { input, observed } = await surroundings.ask(name, 'askModel', ['error-handled'])
    if (input.decision !== undefined) observed(input)
    switch (input.decision) {
      case 'retry':
        return { kind: 'retry' }
      case 'give-up':
        return undefined
      case 'fail':
        throw thrownByPath()
      case undefined: {
        // Asked first what it would do: a hook that does not ask it may decide the same, and then does something else.
        let policy: ReturnType<typeof next> | undefined
        const asked = () => {
          const asking = next()
          policy ??= asking
          return asking
        }
        const hook = own['agent/request-error']
        return watched(
          () => surroundings.run(async () => (hook === undefined ? asked() : hook(payload, asked))),
          async (decided) => observed(judgedBy(decided, policy && { decided: await policy })),
          () => observed({ type: 'error-handled', decision: 'fail' }),
        )
      }
    }
  }

type Judgement = { readonly decided: { readonly kind: 'retry' } | undefined }

/** A retry that the policy planned is the policy's, whoever says so; one that it did not is the hook's own. */
function judgedBy(decided: Judgement['decided'], policy: Judgement | undefined): PathInput {
  const planned = policy?.decided?.kind === 'retry'
  if (decided?.kind !== 'retry')
    return { type: 'error-handled', ...(planned || !policy ? { decision: 'give-up' } : {}) }
  return { type: 'error-handled', ...(planned ? {} : { decision: 'retry' }) }
}

const preExecute =
  ({ surroundings, own }: PathHooksOptions): Hooks['tools/pre-execute'] =>
  async (payload, next) => {
    const { callId } = payload
    const actor = `tool.${callId}.authorizing.0`
    const { input, observed } = await surroundings.ask(`pre-execute ${callId}`, actor, ['allowed', 'denied', 'asked'])
    if (input.type !== 'allowed') observed(input)
    switch (input.type) {
      case 'denied':
        return { kind: 'deny', reason: 'no' }
      case 'asked':
        return { kind: 'ask' }
      case 'allowed': {
        const hook = own['tools/pre-execute']
        const decide = async () => (hook === undefined ? next() : hook(payload, next))
        return watched(
          () => surroundings.run(decide),
          (decided) => observed({ type: authorizedBy(decided), callId }),
          () => observed({ type: 'denied', callId }),
        )
      }
    }
  }

const AUTHORIZED = { allow: 'allowed', deny: 'denied', ask: 'asked' } as const satisfies Record<
  PreExecute['kind'],
  PathInput['type']
>

/** What comes from a user may be anything; an answer that is none lets no call through. */
const authorizedBy = (decided: PreExecute | undefined): 'allowed' | 'denied' | 'asked' =>
  (decided && AUTHORIZED[decided.kind]) ?? 'denied'

/** A path's own verdict comes in the place of the user's hook; what that one decides is seen by the call's result. */
const postExecute =
  ({ surroundings, own }: PathHooksOptions): Hooks['tools/post-execute'] =>
  async (payload, next) => {
    const { callId } = payload
    const judged = surroundings.judgements.get(callId)
    surroundings.judgements.delete(callId)
    if (judged === 'block') return { kind: 'block', feedback: 'no' }
    if (judged === 'fail') throw thrownByPath()
    const hook = own['tools/post-execute']
    return hook === undefined ? next() : surroundings.run(async () => hook(payload, next))
  }

const turnStopping =
  ({ surroundings, own, context }: PathHooksOptions): Hooks['agent/turn-stopping'] =>
  async (payload) => {
    const { turn, step } = context()
    const { input, observed } = await surroundings.ask(`turn-stopping ${turn}.${step}`, 'stopTurn', ['stopping'])
    if (input.decision !== 'none') observed(input)
    switch (input.decision) {
      case 'stop':
        return { kind: 'stopped-by-policy', policy: 'path' }
      case 'fail':
        throw thrownByPath()
      case 'none':
        return watched(
          () => surroundings.run(() => own['agent/turn-stopping']?.(payload)),
          (reason) => observed({ type: 'stopping', decision: reason?.kind === 'stopped-by-policy' ? 'stop' : 'none' }),
          () => observed({ type: 'stopping', decision: 'fail' }),
        )
    }
  }

/**
 * Runs, and tells what came of it before anybody else learns of it. An answer that cannot be told is none: the agent
 * takes it for the hook's failure.
 */
async function watched<T>(
  run: () => Promise<T>,
  came: (value: T) => void | Promise<void>,
  failed: () => void,
): Promise<T> {
  let value: T
  try {
    value = await run()
  } catch (thrown) {
    failed()
    throw thrown
  }
  try {
    await came(value)
  } catch {
    failed()
  }
  return value
}
