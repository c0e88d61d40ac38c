/** Cancels: cut short by a crash in every state that waits, and whole ones, with all they leave behind. */
import { fails, gate, pause, text, toolCall } from '../../../dist/adapters.js'
import { endless, quick } from '../bodies.mjs'
import { aborted, atRest, completed, each, left } from '../life.mjs'
import { asked, hanging, moment, says, settle } from '../stage.mjs'

/** @typedef {import('../stage.mjs').Options} Options */
/** @typedef {import('../stage.mjs').Agent} Agent */
/** @typedef {import('../life.mjs').Act} Act */

const call = (/** @type {string} */ name, /** @type {string} */ id) => toolCall(name, { of: id }, { id })

/** @param {Agent} agent */
const cancel = (agent) => void agent.cancel()

/**
 * A process that dies while a cancel waits for what does not answer.
 * @param {() => { options: Options, reached: Promise<unknown> }} make
 * @param {(agent: Agent) => void} [how]
 * @returns {Act}
 */
const diesInCancel =
  (make, how = cancel) =>
  async ({ open, die }) => {
    const { options, reached } = make()
    const agent = await open(options)
    agent.followup('go')
    await reached
    how(agent)
    await die(agent)
  }

/** @param {'agent/pre-step' | 'agent/turn-stopping' | 'agent/request'} hook */
const inHook = (hook) => () => {
  const begun = moment()
  return { options: { hooks: { [hook]: hanging(begun) } }, reached: begun.reached }
}

/** A body that does not hear its signal, and a call behind it. */
function inBody() {
  const { tool, begun } = endless('deaf', { mode: 'exclusive', onCrash: 'rerun' })
  return {
    options: { model: says([[call('deaf', 'c1'), call('look', 'c2')]]), tools: [tool, quick('look')] },
    reached: begun,
  }
}

const deaf = [{ name: 'deaf', onCrash: /** @type {const} */ ('rerun') }, { name: 'look' }]

export const cancels = each({
  'cancel-cut-in-pre-step': {
    left: left('a cancel that waited for a hook before the step', 'preStep', { turns: [aborted()] }),
    acts: [diesInCancel(inHook('agent/pre-step'))],
  },
  'cancel-cut-in-a-request': {
    left: left('a cancel that waited for a hook of the request', 'stepRequest.streaming', { turns: [aborted()] }),
    acts: [diesInCancel(inHook('agent/request'))],
  },
  'cancel-cut-in-a-body': {
    left: left('a cancel that waited for a body; nothing runs again', 'toolExec', { tools: deaf, turns: [aborted()] }),
    acts: [diesInCancel(inBody)],
  },
  'cancel-cut-in-turn-stopping': {
    left: left('a cancel that waited for a hook at the turn’s end', 'turnStopping', { turns: [aborted()] }),
    acts: [diesInCancel(inHook('agent/turn-stopping'))],
  },
  'cancel-cut-that-keeps-the-inbox': {
    left: left('a cancel under which nothing queued was to be lost', 'preStep', {
      wake: true,
      turns: [aborted(), completed(2), completed(3)],
    }),
    acts: [
      diesInCancel(inHook('agent/pre-step'), (agent) => {
        agent.followup('kept')
        agent.inject('kept for a step')
        void agent.cancel({ kind: 'user' }, { keepInbox: true })
      }),
    ],
  },
  'cancel-cut-with-a-message-behind-it': {
    left: left('a message that came while a cancel was in progress', 'toolExec', {
      tools: deaf,
      turns: [aborted(), completed(2)],
    }),
    acts: [
      diesInCancel(inBody, (agent) => {
        agent.followup('dropped by the cancel')
        void agent.cancel()
        agent.steer('for the turn after it')
      }),
    ],
  },
  'cancel-cut-for-a-limit': {
    left: left('a limit reached while a body ran', 'toolExec', {
      tools: deaf,
      turns: [
        {
          turn: 1,
          reason: { kind: 'limit', limit: { name: 'time', scope: 'turn', max: 60_000, spent: 60_000 } },
        },
      ],
      parked: ['kept by a limit'],
    }),
    acts: [
      async ({ open, die, clock }) => {
        const { options, reached } = inBody()
        const agent = await open({ ...options, limits: { turn: { timeMs: 60_000 } } })
        agent.followup('go')
        await reached
        agent.followup('kept by a limit')
        clock.pass(60_000)
        await die(agent)
      },
    ],
  },
  'cancel-of-every-kind-of-waiting': atRest(
    'cancels of a retry that waits, of an approval that waits, and of an inbox at rest',
    async ({ open }) => {
      const agent = await open({
        model: says([fails('SERVER'), [call('pay', 'c1')]]),
        tools: [quick('pay', { needsApproval: true })],
      })
      const first = agent.run('go')
      await agent.whenQuiet()
      await agent.cancel()
      await first
      const second = agent.run('pay')
      await asked(agent)
      await agent.cancel()
      await second
      agent.inject('for nobody')
      await agent.cancel()
      await agent.close()
    },
  ),
  'cancel-that-left-things-behind': atRest(
    'a hook and a tool that outlived their cancel; what the tool said later is kept beside the conversation',
    async ({ open, clock }) => {
      const begun = moment()
      /** @type {(said: string) => void} */
      let end = () => {}
      const late = quick('late', {
        execute: () =>
          new Promise((resolve) => {
            end = resolve
            begun.hit()
          }),
      })
      const agent = await open({ model: says([[call('late', 'c1')], 'Three.']), tools: [late] })
      const asked = moment()
      const dispose = agent.on('agent/pre-step', hanging(asked))
      const first = agent.run('first')
      await asked.reached
      const firstCancel = agent.cancel()
      await settle()
      clock.pass(10_000)
      await Promise.all([first, firstCancel])
      dispose()
      const second = agent.run('second')
      await begun.reached
      const secondCancel = agent.cancel()
      await settle()
      clock.pass(10_000)
      await Promise.all([second, secondCancel])
      end('said too late')
      await settle()
      await agent.run('third')
      await agent.close()
    },
  ),
  'cancel-that-keeps-the-inbox': {
    left: left('messages that a cancel left parked, in both queues', 'idle', {
      wake: true,
      turns: [completed(2), completed(3)],
    }),
    acts: [
      async ({ open }) => {
        const held = gate()
        const agent = await open({ model: says([[text('Half'), pause(held)]]) })
        const running = agent.run('go')
        await held.reached
        agent.followup('parked')
        agent.followup('parked behind it')
        agent.inject('parked for a step')
        await agent.cancel({ kind: 'user' }, { keepInbox: true })
        await running
        await agent.close()
      },
    ],
  },
})
