/**
 * The tools of a path: each body and each probe waits for the path's word. Bodies heed no signal, so that a cancel
 * finds them hanging. A real tool does its own work then.
 */
import type { Tool, ToolContext } from '../../services/tools/contract.ts'
import { type ToolDefinition, tool } from '../../services/tools/tool.ts'
import { type PathTool, TIMES } from '../path.ts'
import type { CallOutcome, PathInput } from '../path-input.ts'
import { pathMessage } from '../stimulus.ts'
import type { Surroundings, Told } from './surroundings.ts'

export const createPathTools = (surroundings: Surroundings, tools: readonly PathTool[]): readonly Tool[] =>
  tools.map((one) => (one.tool === undefined ? made(surroundings, one) : gated(surroundings, one.tool)))

const body = ({ callId, run }: Pick<ToolContext, 'callId' | 'run'>) =>
  [`body ${callId} ${run}`, `tool.${callId}.executing.${run}`] as const

const probe = ({ callId, run }: { readonly callId: string; readonly run: number }) =>
  [`probe ${callId}`, `tool.${callId}.recovering.${run}`] as const

type Parameters = { readonly type: 'object' }

function made(surroundings: Surroundings, { name, mode, onCrash, needsApproval }: PathTool): Tool {
  const probed: ToolDefinition<Parameters>['onCrash'] = async (context) => {
    const { input, observed } = await surroundings.ask(...probe(context), ['probed'])
    observed(input)
    return input.answer === 'done' ? { kind: 'done', value: 'done' } : { kind: input.answer }
  }
  return tool({
    name,
    description: 'A tool of a path.',
    parameters: { type: 'object' },
    mode,
    needsApproval,
    onCrash: onCrash === 'probe' ? probed : onCrash,
    approvalExpiresMs: TIMES.approvalExpires,
    async execute(_, context) {
      const { input, observed } = await settlement(surroundings, context)
      observed(input)
      return settle(input.outcome, context)
    },
  })
}

/** The path's word on a body, and on what the hook after it will say. */
async function settlement(surroundings: Surroundings, context: ToolContext): Promise<Told<'settled'>> {
  const told = await surroundings.ask(...body(context), ['settled'])
  if (told.input.judged !== undefined) surroundings.judgements.set(context.callId, told.input.judged)
  return told
}

function settle(outcome: CallOutcome, context: ToolContext): string {
  if (outcome === 'error') throw new Error('failed')
  if (outcome === 'concludes') context.concludeTurn()
  if (outcome === 'adds') context.addContext(pathMessage(`context-${context.callId}`))
  return 'done'
}

/** A user's own, in time with the path: no time of its own passes. */
function gated(surroundings: Surroundings, { timeoutMs: _, ...own }: Tool): Tool {
  const { probe: ownProbe } = own
  return {
    ...own,
    approvalExpiresMs: TIMES.approvalExpires,
    async execute(args, context) {
      const { input, observed } = await settlement(surroundings, context)
      const sent: PathInput[] = []
      const watching: ToolContext = {
        ...context,
        steer: (message) => noted('steer', context.steer(message)),
        inject: (message) => noted('inject', context.inject(message)),
      }
      const noted = <T extends { readonly id: string }>(type: 'steer' | 'inject', receipt: T): T => {
        sent.push({ type, id: receipt.id })
        return receipt
      }
      try {
        return await surroundings.run(() => own.execute(args, watching))
      } finally {
        observed(...sent, input)
      }
    },
    ...(ownProbe === undefined
      ? {}
      : {
          async probe(context) {
            const { observed } = await surroundings.ask(...probe(context), ['probed'])
            const answer = await surroundings.run(() => ownProbe(context)).catch(() => ({ kind: 'unknown' }) as const)
            observed({ type: 'probed', callId: context.callId, answer: answer.kind })
            return answer
          },
        }),
  }
}
