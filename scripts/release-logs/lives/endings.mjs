/** A turn's every end, each at rest. */
import { fails, finish, gate, pause, reasoning, scripted, text, toolCall, usage } from '../../../dist/adapters.js'
import { quick } from '../bodies.mjs'
import { atRest, completed, each, left } from '../life.mjs'
import { hanging, moment, says } from '../stage.mjs'

/** @typedef {import('../stage.mjs').Options} Options */

const look = quick('look')
const write = quick('write', { mode: 'exclusive', onCrash: 'rerun' })

const spent = (/** @type {number} */ inputTokens) =>
  usage({ inputTokens, outputTokens: 7, cacheReadTokens: 3, cacheWriteTokens: 2, reasoningTokens: 1 })

/** A model that is cut off in the middle of its answer. */
function halfway() {
  const held = gate()
  return { model: says([[text('Half of an ans', { deltas: 2 }), pause(held)]]), reached: held.reached }
}

/** @param {import('../../../dist/index.js').CancelCause} cause @returns {import('../life.mjs').Act} */
const cancelledBy =
  (cause) =>
  async ({ open }) => {
    const { model, reached } = halfway()
    const agent = await open({ model })
    const running = agent.run(`to be cancelled by ${cause.kind}`)
    await reached
    if (cause.kind === 'disposed') await agent.close({ cancel: cause })
    else await agent.cancel(cause)
    await running
    await agent.close()
  }

/** One turn with these options. @param {Options} options @returns {import('../life.mjs').Act} */
const oneTurn =
  (options) =>
  async ({ open }) => {
    const agent = await open(options)
    await agent.run('go')
    await agent.close()
  }

const priced = {
  ...scripted(() => [toolCall('look', {}, { id: 'k1' }), usage({ inputTokens: 1_000_000, outputTokens: 1_000_000 })]),
  prepare: async (/** @type {import('../../../dist/index.js').LlmCallConfig} */ config) => ({
    config,
    contextWindow: 128_000,
    price: { input: 0.27, output: 1.1, cacheRead: 0.07, cacheWrite: 0.27 },
  }),
}

export const endings = each({
  completed: atRest(
    'turns that went well: tools side by side, messages of every kind, the context told',
    async ({ open }) => {
      const agent = await open({
        model: says([
          [
            reasoning('Hm, two of them.'),
            text('Let me look.', { deltas: 3 }),
            toolCall('look', { n: 1 }, { id: 'c1' }),
            toolCall('look', { n: 2 }, { id: 'c2' }),
            toolCall('write', { text: 'x' }, { id: 'c3' }),
            spent(100),
          ],
          [text('Seen and written.', { deltas: 2 }), spent(140)],
          [text('The second.'), spent(150)],
          [text('The third.'), spent(160)],
        ]),
        tools: [look, write],
        system: [
          { name: 'role', text: 'You are {{who}}.' },
          { name: 'manner', order: -1, text: 'Be brief.' },
        ],
        context: [{ name: 'day', text: 'Today is {{day}}.' }],
        variables: { who: 'a clerk', day: 'a Sunday' },
        maxParallelToolCalls: 2,
        maxTokens: 4_000,
        reasoningEffort: 'high',
      })
      agent.inject('for later')
      agent.followup('go')
      agent.followup('and then')
      agent.steer('at once')
      await agent.whenIdle()
      await agent.run('the last')
      await agent.close()
    },
  ),

  blocked: atRest(
    'turns that a hook kept out, with and without a reason, and one it let in with a word of its own',
    async ({ open }) => {
      let turns = 0
      const agent = await open({
        hooks: {
          async 'agent/pre-step'({ messages }, next) {
            turns += 1
            if (turns === 1) return { kind: 'reject', reason: 'not on a Sunday' }
            if (turns === 2) return { kind: 'reject' }
            await next()
            const source = /** @type {const} */ ({ kind: 'plugin', plugin: 'gate/keeper' })
            const word = /** @type {const} */ ({ type: 'text', text: 'He may.' })
            return { kind: 'enter', messages: [...messages, { id: 'word', role: 'user', content: [word], source }] }
          },
        },
      })
      for (const message of ['may I?', 'and now?', 'please']) await agent.run(message)
      await agent.close()
    },
  ),

  failed: atRest(
    'a request that failed for good, with all that a provider says of it, and a hook that threw',
    oneTurn({
      model: says([
        fails({
          code: 'AUTH',
          status: 401,
          requestId: 'req_0b7',
          message: 'The key is not accepted',
          providerRetryAfterMs: 2_500.5,
        }),
      ]),
    }),
    oneTurn({
      hooks: {
        'agent/pre-step': () => {
          throw new Error('the hook is down')
        },
      },
    }),
  ),

  aborted: atRest(
    'answers cut off by everyone who may: the user, a parent, a hook, and the end of the agent',
    cancelledBy({ kind: 'user' }),
    cancelledBy({ kind: 'parent' }),
    cancelledBy({ kind: 'hook', reason: 'it went on too long' }),
    cancelledBy({ kind: 'disposed' }),
  ),

  'max-tokens': atRest(
    'an answer cut by its token limit, and one with a call that was carried out all the same',
    oneTurn({ model: says([[text('Cut o'), finish({ kind: 'max-tokens' })]]) }),
    oneTurn({
      model: says([[text('Cut'), toolCall('look', {}, { id: 'c1' }), finish({ kind: 'max-tokens' })], 'Seen.']),
      tools: [look],
    }),
  ),

  'max-steps': atRest('a turn that spent its steps with results owed, and a message that waited', async ({ open }) => {
    const agent = await open({
      model: scripted((_, n) => (n < 2 ? [toolCall('look', { n }, { id: `c${n}` })] : 'Next turn.')),
      tools: [look],
      maxSteps: 2,
    })
    const first = agent.followup('go')
    agent.followup('after it')
    await first.turn
    await agent.whenIdle()
    agent.wake()
    await agent.whenIdle()
    await agent.close()
  }),

  limits: {
    left: left('turns that reached a limit: tokens, told and estimated, time, cost; and the session’s own', 'idle', {
      parked: ['one too many'],
    }),
    acts: [
      oneTurn({
        model: scripted((_, n) => [toolCall('look', { n }, { id: `t${n}` }), spent(60)]),
        tools: [look],
        limits: { turn: { tokens: 100 } },
      }),
      oneTurn({
        model: scripted((_, n) => [toolCall('look', { n }, { id: `e${n}` })]),
        tools: [look],
        limits: { turn: { tokens: 20 } },
      }),
      async ({ open, clock }) => {
        const { model, reached } = halfway()
        const agent = await open({ model, limits: { turn: { timeMs: 60_000 } } })
        const running = agent.run('think long')
        await reached
        clock.pass(60_000)
        await running
        await agent.close()
      },
      oneTurn({ model: priced, tools: [look], limits: { turn: { cost: 1 } } }),
      async ({ open }) => {
        const agent = await open({ limits: { session: { tokens: 100 } } })
        await agent.run('one too many')
        await agent.close()
      },
    ],
  },

  'repeated-call': atRest(
    'the same call again and again: the model is warned, then the turn ends',
    oneTurn({
      model: scripted((_, n) => toolCall('look', { at: 'the same' }, { id: `c${n}` })),
      tools: [look],
      repeatedCalls: { warnAfter: 2, stopAfter: 4 },
    }),
  ),

  'stopped-by-policy': atRest('turns that a hook ended by policy, let end, and failed to end', async ({ open }) => {
    const agent = await open()
    /** @type {readonly import('../../../dist/index.js').Hooks['agent/turn-stopping'][]} */
    const hooks = [
      () => ({ kind: 'stopped-by-policy', policy: 'four-eyes', reason: 'nobody else looked' }),
      () => ({ kind: 'stopped-by-policy', policy: 'quota' }),
      () => ({ kind: 'completed' }),
      () => {
        throw new TypeError('the policy is down')
      },
    ]
    for (const hook of hooks) {
      const dispose = agent.on('agent/turn-stopping', hook)
      await agent.run('go')
      dispose()
    }
    await agent.close()
  }),

  concluded: atRest('a tool that ended its turn, and a hook that steered on until it would not', async ({ open }) => {
    const conclude = quick('conclude', { execute: (_, context) => context.concludeTurn() })
    const agent = await open({
      model: says([toolCall('conclude', {}, { id: 'c1' }), 'One.', 'Two.']),
      tools: [conclude],
    })
    await agent.run('end it')
    let steered = 0
    agent.on('agent/turn-stopping', () => {
      if (steered++ === 0) agent.steer('once more')
    })
    await agent.run('go on')
    await agent.close()
  }),

  interrupted: {
    left: left('a turn that a crash cut short and recovery closed: what waited is parked', 'idle', {
      wake: true,
      turns: [completed(2), completed(3)],
    }),
    acts: [
      async ({ open, die }) => {
        const begun = moment()
        const slow = quick('slow', { execute: hanging(begun) })
        const calls = [toolCall('slow', {}, { id: 'c1' }), toolCall('write', {}, { id: 'c2' })]
        const agent = await open({ model: says([calls]), tools: [slow, write] })
        agent.followup('go')
        await begun.reached
        agent.followup('waits for a turn')
        agent.steer('waits for a step')
        agent.followup('waits as well')
        await die(agent)
      },
      async ({ open }) => {
        const agent = await open({ recovery: 'interrupt' })
        await agent.whenIdle()
        await agent.close()
      },
    ],
  },

  'interrupted-by-the-recovery-limit': {
    left: left('a turn that was found cut short more often than is tried', 'idle'),
    acts: [1, 2, 3].map(() => async ({ open, die }) => {
      const { model, reached } = halfway()
      const agent = await open({ model, maxResumes: 1 })
      if (agent.session.head === 0) agent.followup('go')
      await Promise.race([reached, agent.whenIdle()])
      if (agent.status === 'running') await die(agent)
      await agent.close()
    }),
  },
})
