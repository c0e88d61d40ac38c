/** What the hooks of an agent can decide: what paths try of each. */
import { InvalidOption } from '../services/errors.ts'
import type { PathTool } from './path.ts'

/** By default all that each can. */
export interface HookVerdicts {
  readonly 'agent/pre-step': readonly ('enter' | 'enter-none' | 'reject' | 'fail')[]
  readonly 'tools/pre-execute': readonly ('allow' | 'deny' | 'ask')[]
  readonly 'agent/turn-stopping': readonly ('none' | 'stop' | 'fail')[]
}

export const ALL_VERDICTS: HookVerdicts = {
  'agent/pre-step': ['enter', 'enter-none', 'reject', 'fail'],
  'tools/pre-execute': ['allow', 'deny', 'ask'],
  'agent/turn-stopping': ['none', 'stop', 'fail'],
}

/** @throws InvalidOption for a hook that can decide nothing */
export function completeVerdicts(given: Partial<HookVerdicts>): HookVerdicts {
  const verdicts = { ...ALL_VERDICTS, ...given }
  for (const [hook, decisions] of Object.entries(verdicts)) {
    if (decisions.length === 0) throw new InvalidOption('hooks', `"${hook}" has to decide something`)
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
