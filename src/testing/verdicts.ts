/** What the hooks of an agent can decide: what paths try of each. */
import { InvalidOption } from '../services/errors.ts'
import type { PathTool } from './path.ts'

/** By default all that each can. */
export interface HookVerdicts {
  readonly 'agent/pre-step': readonly ('enter' | 'enter-none' | 'reject' | 'fail')[]
  /** `policy`: what `next()` gives. `retry` asks again where the policy would not, `give-up` does not where it would. */
  readonly 'agent/request-error': readonly ('policy' | 'retry' | 'give-up' | 'fail')[]
  readonly 'tools/pre-execute': readonly ('allow' | 'deny' | 'ask')[]
  readonly 'tools/post-execute': readonly ('accept' | 'block' | 'fail')[]
  readonly 'agent/turn-stopping': readonly ('none' | 'stop' | 'fail')[]
}

export const ALL_VERDICTS: HookVerdicts = {
  'agent/pre-step': ['enter', 'enter-none', 'reject', 'fail'],
  'agent/request-error': ['policy', 'retry', 'give-up', 'fail'],
  'tools/pre-execute': ['allow', 'deny', 'ask'],
  'tools/post-execute': ['accept', 'block', 'fail'],
  'agent/turn-stopping': ['none', 'stop', 'fail'],
}

/** @throws InvalidOption for a hook that can decide nothing, and for a hook or a verdict that is none */
export function completeVerdicts(given: Partial<HookVerdicts>): HookVerdicts {
  const verdicts = { ...ALL_VERDICTS, ...given }
  const known: Readonly<Record<string, readonly string[]>> = { ...ALL_VERDICTS }
  for (const [hook, decisions] of Object.entries<readonly string[]>(verdicts)) {
    const all = known[hook]
    if (all === undefined) throw new InvalidOption('hooks', `"${hook}" is none of ${Object.keys(known).join(', ')}`)
    if (decisions.length === 0) throw new InvalidOption('hooks', `"${hook}" has to decide something`)
    const wrong = decisions.find((decision) => !all.includes(decision))
    if (wrong !== undefined) throw new InvalidOption('hooks', `"${hook}" decides ${all.join(', ')}, not "${wrong}"`)
  }
  return verdicts
}

const AUTHORIZATIONS = { allow: 'allowed', deny: 'denied', ask: 'asked' } as const

/** A tool that asks by itself need not be asked about by a hook that can also allow it. */
export function authorizations({ needsApproval }: PathTool, verdicts: HookVerdicts) {
  const all = verdicts['tools/pre-execute']
  const isSaidTwice = needsApproval && all.includes('allow')
  return all.filter((verdict) => verdict !== 'ask' || !isSaidTwice).map((one) => AUTHORIZATIONS[one])
}
