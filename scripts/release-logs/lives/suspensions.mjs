/** A turn left open by a clean close, in every state that can be left so. */
import { fails, gate, pause, text, toolCall } from '../../../dist/adapters.js'
import { endless, quick } from '../bodies.mjs'
import { aborted, completed, each, left } from '../life.mjs'
import { asked, hanging, moment, says, settle } from '../stage.mjs'

/** @typedef {import('../stage.mjs').Options} Options */
/** @typedef {import('../stage.mjs').Stage} Stage */
/** @typedef {import('../stage.mjs').Agent} Agent */
/** @typedef {import('../life.mjs').Act} Act */

const call = (/** @type {string} */ name, /** @type {string} */ id) => toolCall(name, { of: id }, { id })

/**
 * A process that closes its agent once `reached` resolves.
 * @param {() => { options: Options, reached: Promise<unknown> | ((agent: Agent) => Promise<unknown>) }} make
 * @returns {Act}
 */
const suspends =
  (make) =>
  async ({ open }) => {
    const { options, reached } = make()
    const agent = await open(options)
    if (agent.session.head === 0) agent.followup('go')
    await (typeof reached === 'function' ? reached(agent) : reached)
    await settle()
    await agent.close({ graceMs: 0 })
  }

/** @param {'agent/pre-step' | 'agent/turn-stopping'} hook */
const inHook = (hook) =>
  suspends(() => {
    const begun = moment()
    return { options: { hooks: { [hook]: hanging(begun) } }, reached: begun.reached }
  })

const inAnswer = suspends(() => {
  const held = gate()
  return { options: { model: says([[text('Half of it', { deltas: 2 }), pause(held)]]) }, reached: held.reached }
})

const inBody = suspends(() => {
  const { tool, begun } = endless('work', { onCrash: 'rerun', mode: 'exclusive' })
  return {
    options: { model: says([[call('work', 'c1'), call('look', 'c2')]]), tools: [tool, quick('look')] },
    reached: begun,
  }
})

const inRetry = suspends(() => ({
  options: { model: says([fails('SERVER')]) },
  reached: (agent) => agent.whenQuiet(),
}))

export const suspensions = each({
  'suspended-in-pre-step': {
    left: left('left open before a step', 'preStep', { turns: [completed()] }),
    acts: [inHook('agent/pre-step')],
  },
  'suspended-in-an-answer': {
    left: left('left open in an answer', 'stepRequest.streaming', { turns: [completed()] }),
    acts: [inAnswer],
  },
  'suspended-while-a-retry-waits': {
    left: left('left open before a retry', 'stepRequest.waiting', { turns: [completed()] }),
    acts: [inRetry],
  },
  'suspended-in-a-body': {
    left: left('left open with one call running and one planned', 'toolExec', {
      tools: [{ name: 'work', onCrash: 'rerun' }, { name: 'look' }],
      turns: [completed()],
      ran: ['look c2 1', 'work c1 2'],
    }),
    acts: [inBody],
  },
  'suspended-awaiting-an-approval': {
    left: left('left open with a question asked', 'toolExec', {
      tools: [{ name: 'pay', needsApproval: true }],
      answers: { c1: 'approve' },
      turns: [completed()],
      ran: ['pay c1 1'],
    }),
    acts: [
      suspends(() => ({
        options: { model: says([[call('pay', 'c1')]]), tools: [quick('pay', { needsApproval: true })] },
        reached: (agent) => asked(agent),
      })),
    ],
  },
  'suspended-in-turn-stopping': {
    left: left('left open before its end', 'turnStopping', { turns: [completed()] }),
    acts: [inHook('agent/turn-stopping')],
  },
  'suspended-under-a-cancel': {
    left: left('left open while a cancel waited', 'preStep', { turns: [aborted()] }),
    acts: [
      suspends(() => {
        const begun = moment()
        return {
          options: { hooks: { 'agent/pre-step': hanging(begun) } },
          async reached(agent) {
            await begun.reached
            agent.cancel().catch(() => {
              // It ends at the next opening, as the log shows.
            })
          },
        }
      }),
    ],
  },
  'suspended-with-messages-waiting': {
    left: left('left open with messages in both queues', 'stepRequest.streaming', {
      turns: [completed(), completed(2)],
    }),
    acts: [
      suspends(() => {
        const held = gate()
        return {
          options: { model: says([[text('Half'), pause(held)]]) },
          async reached(agent) {
            await held.reached
            agent.steer('for the next step')
            agent.followup('for the next turn')
          },
        }
      }),
    ],
  },
  'suspended-often': {
    left: left('left open more often than a crash would be recovered, and left open again', 'stepRequest.streaming', {
      turns: [completed()],
    }),
    acts: [inHook('agent/pre-step'), inAnswer, inAnswer, inRetry, inAnswer, inAnswer],
  },
  'suspended-then-crashed': {
    left: left('left open in order, opened again, and then killed', 'toolExec', {
      tools: [{ name: 'work', onCrash: 'rerun' }, { name: 'look' }],
      turns: [completed()],
      ran: ['look c2 1', 'work c1 3'],
    }),
    acts: [
      inBody,
      async ({ open, die }) => {
        const { tool, begun } = endless('work', { onCrash: 'rerun' })
        const agent = await open({ tools: [tool, quick('look')] })
        await begun
        await die(agent)
      },
    ],
  },
  'suspended-and-finished': {
    left: left('left open, and finished after that', 'idle'),
    acts: [
      inBody,
      async ({ open }) => {
        const agent = await open({ tools: [quick('work', { onCrash: 'rerun' }), quick('look')] })
        await agent.whenIdle()
        await agent.close()
      },
    ],
  },
})
