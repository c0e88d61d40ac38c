/** Paths written by hand: what each input must bring about is told by the closed loop. */
import { applyInput, beginLoop } from '../../src/testing/closed-loop.ts'
import type { AgentPath, PathSetup, PathStep, PathTool } from '../../src/testing/path.ts'
import type { PathInput } from '../../src/testing/path-input.ts'

const tool = (name: string, more: Partial<PathTool> = {}): PathTool => ({
  name,
  mode: 'parallel',
  onCrash: 'unknown',
  needsApproval: false,
  args: { of: name },
  ...more,
})

/** One tool of each kind. */
export const SETUP: PathSetup = {
  maxSteps: 3,
  maxParallelToolCalls: 2,
  maxRetries: 1,
  maxResumes: 3,
  tools: [
    tool('lookup', { onCrash: 'rerun' }),
    tool('charge', { mode: 'exclusive' }),
    tool('refund', { onCrash: 'ask', needsApproval: true }),
    tool('ship', { onCrash: 'probe' }),
  ],
}

export function byHand(label: string, inputs: readonly PathInput[], setup: PathSetup = SETUP): AgentPath {
  const steps: PathStep[] = []
  let state = beginLoop(setup)
  for (const input of inputs) {
    const applied = applyInput(state, input)
    state = applied.state
    steps.push({ input, events: applied.events, state: { value: state.value, context: state.context } })
  }
  const ends = steps.flatMap(({ events }) =>
    events.flatMap((event) => (event.type === 'turn/end' ? [event.data.reason.kind] : [])),
  )
  return { label, setup, steps, ends }
}

/** Up to where the model is asked. */
export const ASKED: readonly PathInput[] = [
  { type: 'followup', id: 'm1' },
  { type: 'prepared', decision: 'enter' },
]

export const calls = (...tools: readonly string[]): PathInput => ({
  type: 'answered',
  finish: 'tool-calls',
  calls: tools.map((name, index) => ({ callId: `c${index + 1}`, tool: name })),
})

/** The last words of a turn. */
export const ANSWERED: readonly PathInput[] = [
  { type: 'answered', finish: 'stop', calls: [] },
  { type: 'stopping', decision: 'none' },
]

/** The step after the tools, and the end. */
export const LAST_STEP: readonly PathInput[] = [{ type: 'prepared', decision: 'enter' }, ...ANSWERED]
