/** What people do to a simulated agent: while it runs, and behind its back while it is down. */
import type { CancelCause } from '../../../src/log/events.ts'
import type { AgentCommand, CancelCommand } from '../../../src/machines/commands.ts'
import { type AgentContext, isMessage } from '../../../src/machines/evolve.ts'
import { BOUNDS, onCrashOf, userMessage } from './effects.ts'
import type { Random } from './random.ts'

type Delivery = Extract<AgentCommand, { readonly type: 'command.followup' | 'command.steer' | 'command.inject' }>
type Reply = Extract<AgentCommand, { readonly type: 'command.approve' | 'command.deny' }>

export const deliver = (random: Random, type: Delivery['type']): AgentCommand => ({
  type,
  message: userMessage(random),
})

/** Any command that makes sense to somebody who saw this context a moment ago. */
export function anyCommand(random: Random, context: AgentContext): AgentCommand {
  const reply = random.chance(0.4) ? anyReply(random, context) : undefined
  if (reply !== undefined) return reply
  const drawn = random.draw()
  if (drawn < 0.12) return anyCancel(random, context)
  if (drawn < 0.2) return anyRemoval(random, context) ?? { type: 'command.wake' }
  if (drawn < 0.23) return { type: 'command.clear' }
  if (drawn < 0.3) return { type: 'command.wake' }
  if (drawn < 0.6) return deliver(random, 'command.followup')
  return deliver(random, drawn < 0.85 ? 'command.steer' : 'command.inject')
}

/** An answer to an open question, now and then to a run that is over. */
export function anyReply(random: Random, { calls }: AgentContext): Reply | undefined {
  const open = calls.filter(({ status }) => status === 'awaiting')
  if (open.length === 0) return undefined
  const { callId, run } = random.pick(open)
  const to = { callId, run: random.chance(0.05) ? run + 1 : run }
  return random.chance(0.6)
    ? { type: 'command.approve', ...to, onCrash: onCrashOf(callId) }
    : { type: 'command.deny', ...to, reason: 'No' }
}

function anyCancel(random: Random, { turn }: AgentContext): CancelCommand {
  const cause: CancelCause = random.chance(0.2) ? random.pick(BOUNDS) : { kind: 'user' }
  const names = random.chance(0.3) ? { turn: Math.max(1, random.chance(0.5) ? turn : turn - 1) } : {}
  const keeps = cause.kind !== 'user' || random.chance(0.4)
  return { type: 'command.cancel', cause, ...names, ...(keeps ? { keepInbox: true } : {}) }
}

function anyRemoval(random: Random, { inbox }: AgentContext): AgentCommand | undefined {
  const waiting = [...inbox['next-step'], ...inbox['next-turn']].filter(isMessage)
  if (waiting.length === 0) return undefined
  const { id } = random.pick(waiting).message
  return { type: 'command.remove', id, ...(random.chance(0.3) ? { replacement: userMessage(random) } : {}) }
}

/** What others left in the mailbox while nobody owned the log. */
export function posted(random: Random, context: AgentContext): readonly AgentCommand[] {
  const commands: AgentCommand[] = []
  if (random.chance(0.15)) commands.push({ ...anyCancel(random, context), turn: context.turn })
  const reply = random.chance(0.4) ? anyReply(random, context) : undefined
  if (reply !== undefined) commands.push(reply)
  if (random.chance(0.1)) commands.push(deliver(random, random.pick(['command.followup', 'command.steer'])))
  if (random.chance(0.05)) commands.push({ type: 'command.wake' })
  return commands
}
