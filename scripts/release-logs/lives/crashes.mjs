/** Every state of the chart as a crash leaves it, and what recovery made of some. */
import { chunks, fails, finish, gate, pause, text, toolCall } from '../../../dist/adapters.js'
import { endless, probe, quick } from '../bodies.mjs'
import { completed, each, left } from '../life.mjs'
import { answer, asked, hanging, moment, says, settle } from '../stage.mjs'

/** @typedef {import('../stage.mjs').Options} Options */
/** @typedef {import('../stage.mjs').Stage} Stage */
/** @typedef {import('../stage.mjs').Agent} Agent */
/** @typedef {import('../life.mjs').Act} Act */

const look = quick('look')
const call = (/** @type {string} */ name, /** @type {string} */ id) => toolCall(name, { of: id }, { id })

/**
 * A process that dies once `reached` resolves; the first one of a session is told to go.
 * @param {() => { options: Options, reached: Promise<unknown> | ((agent: Agent, stage: Stage) => Promise<unknown>) }} make
 * @returns {Act}
 */
const dies = (make) => async (stage) => {
  const { options, reached } = make()
  const agent = await stage.open(options)
  if (agent.session.head === 0) agent.followup('go')
  await (typeof reached === 'function' ? reached(agent, stage) : reached)
  await stage.die(agent)
}

/** In a hook that does not answer. @param {'agent/pre-step' | 'agent/turn-stopping' | 'tools/pre-execute' | 'agent/request'} hook @param {Options} [more] @returns {Act} */
const diesInHook = (hook, more = {}) =>
  dies(() => {
    const begun = moment()
    return { options: { ...more, hooks: { [hook]: hanging(begun) } }, reached: begun.reached }
  })

/** At a point of the model's first answer. @param {readonly import('../../../dist/adapters.js').Part[]} said @returns {Act} */
const diesInAnswer = (...said) =>
  dies(() => {
    const held = gate()
    return { options: { model: says([[...said, pause(held)]]) }, reached: held.reached }
  })

/** In a tool's body. @param {Parameters<typeof quick>[1]} [more] @param {readonly import('../../../dist/adapters.js').Part[]} [said] @returns {Act} */
const diesInBody = (more = {}, said = [text('I will.'), call('work', 'c1')]) =>
  dies(() => {
    const { tool, begun } = endless('work', more)
    return { options: { model: says([said]), tools: [tool, look] }, reached: begun }
  })

/** Carried on to its end. @param {Options} [options] @returns {Act} */
const finishes =
  (options = {}) =>
  async ({ open }) => {
    const agent = await open(options)
    await agent.whenIdle()
    await agent.close()
  }

/** With the question asked. @param {Options} options @param {number} [count] @returns {Act} */
const diesAsking = (options, count = 1) => dies(() => ({ options, reached: (agent) => asked(agent, count) }))

const pay = quick('pay', { mode: 'exclusive', needsApproval: true })
const asks = { onCrash: /** @type {const} */ ('ask') }

export const crashes = each({
  'crash-in-pre-step': {
    left: left('a turn opened, its message claimed, and no step yet', 'preStep', { turns: [completed()] }),
    acts: [diesInHook('agent/pre-step')],
  },
  'crash-in-pre-step-of-a-later-step': {
    left: left('the results of a step claimed for the next one', 'preStep', { turns: [completed()] }),
    acts: [
      dies(() => {
        const begun = moment()
        const second = hanging(begun)
        return {
          options: {
            model: says([[call('look', 'c1'), call('look', 'c2')]]),
            tools: [look],
            hooks: { 'agent/pre-step': ({ step }, next) => (step === 1 ? next() : second()) },
          },
          reached: begun.reached,
        }
      }),
    ],
  },
  'crash-before-the-first-word': {
    left: left('a request that was asked and not answered', 'stepRequest.streaming', { turns: [completed()] }),
    acts: [diesInAnswer()],
  },
  'crash-in-half-an-answer': {
    left: left('some deltas of an answer', 'stepRequest.streaming', { turns: [completed()] }),
    acts: [diesInAnswer(text('Half of an answer that was never ', { deltas: 5 }))],
  },
  'crash-in-a-call-half-spoken': {
    left: left('an answer cut in the arguments of a call', 'stepRequest.streaming', { turns: [completed()] }),
    acts: [
      dies(() => {
        const held = gate()
        const delta = { type: /** @type {const} */ ('tool-call-delta'), index: 1 }
        const said = chunks([
          { type: 'block-start', index: 0, blockType: 'text' },
          { type: 'text-delta', index: 0, text: 'I will ' },
          { type: 'block-start', index: 1, blockType: 'tool-call' },
          { ...delta, id: 'c1', name: 'look', argumentsDelta: '' },
          { ...delta, argumentsDelta: '{"n":' },
        ])
        return { options: { model: says([[said, pause(held)]]), tools: [look] }, reached: held.reached }
      }),
    ],
  },
  'crash-before-the-request': {
    left: left('a step opened, its request not yet made', 'stepRequest.streaming', { turns: [completed()] }),
    acts: [diesInHook('agent/request')],
  },
  'crash-while-a-retry-waits': {
    left: left('a failed attempt whose retry is planned', 'stepRequest.waiting', { turns: [completed()] }),
    acts: [dies(() => ({ options: { model: says([fails('SERVER')]) }, reached: (agent) => agent.whenQuiet() }))],
  },
  'crash-while-a-late-retry-waits': {
    left: left('a retry whose time comes while nobody is there', 'stepRequest.waiting', {
      afterMs: 3_600_000,
      turns: [completed()],
    }),
    acts: [
      dies(() => ({
        options: {
          model: says([[text('Wait'), fails({ code: 'RATE_LIMIT', status: 429, providerRetryAfterMs: 7_000 })]]),
        },
        reached: (agent) => agent.whenQuiet(),
      })),
    ],
  },
  'crash-in-a-retry': {
    left: left('the second attempt of a request, half answered', 'stepRequest.streaming', { turns: [completed()] }),
    acts: [
      dies(() => {
        const held = gate()
        return {
          options: {
            model: says([
              [text('One'), fails('TRANSPORT')],
              [text('Two'), pause(held)],
            ]),
          },
          async reached(agent, { clock }) {
            await agent.whenQuiet()
            clock.pass(10_000)
            await held.reached
          },
        }
      }),
    ],
  },
  'crash-with-a-call-authorizing': {
    left: left('a call scheduled and not yet allowed', 'toolExec', {
      tools: [{ name: 'look' }],
      turns: [completed()],
      ran: ['look c1 1'],
    }),
    acts: [diesInHook('tools/pre-execute', { model: says([[call('look', 'c1')]]), tools: [look] })],
  },
  'crash-with-a-call-planned': {
    left: left('a call that waits for its turn behind one whose outcome nobody knows', 'toolExec', {
      tools: [{ name: 'work' }, { name: 'look' }],
      turns: [completed()],
      ran: ['look c2 1'],
    }),
    acts: [diesInBody({ mode: 'exclusive' }, [call('work', 'c1'), call('look', 'c2')])],
  },
  'crash-in-a-body': {
    left: left('a body that ran, of which nothing may be assumed', 'toolExec', {
      tools: [{ name: 'work' }],
      turns: [completed()],
    }),
    acts: [diesInBody()],
  },
  'crash-in-a-body-that-may-run-again': {
    left: left('a body that ran and may run again', 'toolExec', {
      tools: [{ name: 'work', onCrash: 'rerun' }],
      turns: [completed()],
      ran: ['work c1 2'],
    }),
    acts: [diesInBody({ onCrash: 'rerun' })],
  },
  'crash-in-a-body-that-may-run-again-no-more': {
    left: left('a body that could run again, if its tool still said so', 'toolExec', {
      tools: [{ name: 'work' }],
      turns: [completed()],
    }),
    acts: [diesInBody({ onCrash: 'rerun' })],
  },
  'crash-in-a-body-whose-tool-is-gone': {
    left: left('a body that could run again, if there still were such a tool', 'toolExec', { turns: [completed()] }),
    acts: [diesInBody({ onCrash: 'rerun' })],
  },
  'crash-in-a-body-that-asks': {
    left: left('a body that ran, and may run again if somebody says so', 'toolExec', {
      tools: [{ name: 'work', onCrash: 'ask' }],
      answers: { c1: 'approve' },
      turns: [completed()],
      ran: ['work c1 2'],
    }),
    acts: [diesInBody(asks)],
  },
  'crash-in-a-body-that-was-done': {
    left: left('a body that ran, whose tool finds out that it was done', 'toolExec', {
      tools: [{ name: 'work', onCrash: 'probe', probe: 'done' }],
      turns: [completed()],
      probed: ['work c1'],
    }),
    acts: [diesInBody({ onCrash: probe })],
  },
  'crash-in-a-body-that-was-not-done': {
    left: left('a body that ran, whose tool finds out that it was not done', 'toolExec', {
      tools: [{ name: 'work', onCrash: 'probe', probe: 'not-done' }],
      turns: [completed()],
      ran: ['work c1 2'],
      probed: ['work c1'],
    }),
    acts: [diesInBody({ onCrash: probe })],
  },
  'crash-in-a-body-that-cannot-tell': {
    left: left('a body that ran, whose tool finds out nothing', 'toolExec', {
      tools: [{ name: 'work', onCrash: 'probe', probe: 'unknown' }],
      turns: [completed()],
      probed: ['work c1'],
    }),
    acts: [diesInBody({ onCrash: probe })],
  },
  'crash-in-bodies-of-every-kind': {
    left: left('calls in every phase at once, under every policy', 'toolExec', {
      tools: [
        { name: 'lost', mode: 'parallel' },
        { name: 'again', mode: 'parallel', onCrash: 'rerun' },
        { name: 'asks', mode: 'parallel', onCrash: 'ask' },
        { name: 'seen', mode: 'parallel', onCrash: 'probe', probe: 'done' },
        { name: 'pay', needsApproval: true },
        { name: 'last' },
      ],
      answers: { c4: 'deny', c6: 'approve' },
      turns: [completed()],
      ran: ['again c3 2', 'last c7 1', 'pay c6 1'],
      probed: ['seen c5'],
    }),
    acts: [
      dies(() => {
        const bodies = [
          endless('lost'),
          endless('again', { onCrash: 'rerun' }),
          endless('asks', asks),
          endless('seen', { onCrash: probe }),
        ]
        const parallelPay = quick('pay', { needsApproval: true })
        const said = ['look', 'lost', 'again', 'asks', 'seen', 'pay', 'last'].map((name, i) => call(name, `c${i + 1}`))
        const tools = [look, ...bodies.map(({ tool }) => tool), parallelPay, quick('last', { mode: 'exclusive' })]
        return {
          options: { model: says([said]), tools },
          async reached(agent) {
            await Promise.all(bodies.map(({ begun }) => begun))
            await asked(agent)
          },
        }
      }),
    ],
  },
  'crash-in-turn-stopping': {
    left: left('a turn whose end the hooks were asked about', 'turnStopping', { turns: [completed()] }),
    acts: [diesInHook('agent/turn-stopping')],
  },
  'crash-in-turn-stopping-of-a-cut-answer': {
    left: left('the same, of an answer that its token limit cut', 'turnStopping', {
      turns: [{ turn: 1, reason: { kind: 'max-tokens' } }],
    }),
    acts: [diesInHook('agent/turn-stopping', { model: says([[text('Cu'), finish({ kind: 'max-tokens' })]]) })],
  },
  'crash-awaiting-an-approval': {
    left: left('a call that nobody has allowed yet', 'toolExec', {
      tools: [{ name: 'pay', needsApproval: true }],
      answers: { c1: 'approve' },
      turns: [completed()],
      ran: ['pay c1 1'],
    }),
    acts: [diesAsking({ model: says([[call('pay', 'c1')]]), tools: [pay] })],
  },
  'crash-awaiting-approvals': {
    left: left('one question answered, one to be denied, and a call behind them', 'toolExec', {
      tools: [{ name: 'pay', needsApproval: true }, { name: 'look' }],
      answers: { c2: 'deny' },
      turns: [completed()],
      ran: ['look c3 1'],
    }),
    acts: [
      dies(() => ({
        options: {
          model: says([[call('pay', 'c1'), call('pay', 'c2'), call('look', 'c3')]]),
          tools: [pay, quick('look', { mode: 'exclusive' })],
        },
        async reached(agent) {
          await asked(agent)
          await answer(agent, 'c1', 'approve', { by: 'the boss' })
          await asked(agent)
        },
      })),
    ],
  },
  'crash-awaiting-an-approval-that-expires': {
    left: left('a question whose time runs out while nobody is there', 'toolExec', {
      tools: [{ name: 'pay', needsApproval: true, approvalExpiresMs: 60_000 }],
      afterMs: 60_001,
      turns: [completed()],
    }),
    acts: [
      diesAsking({
        model: says([[call('pay', 'c1')]]),
        tools: [quick('pay', { needsApproval: true, approvalExpiresMs: 60_000 })],
      }),
    ],
  },
  'crash-awaiting-an-approval-that-will-expire': {
    left: left('a question whose time runs out once the log is open again', 'toolExec', {
      tools: [{ name: 'pay', needsApproval: true, approvalExpiresMs: 60_000 }],
      answers: { c1: 'expire' },
      turns: [completed()],
    }),
    acts: [
      diesAsking({
        model: says([[call('pay', 'c1')]]),
        tools: [quick('pay', { needsApproval: true, approvalExpiresMs: 60_000 })],
      }),
    ],
  },
  'crash-thrice-in-one-turn': {
    left: left('cut in its answer, in a body, and in that body’s second run', 'toolExec', {
      tools: [{ name: 'work', onCrash: 'rerun' }],
      turns: [completed()],
      ran: ['work c1 3'],
    }),
    acts: [
      diesInAnswer(text('Half', { deltas: 2 })),
      diesInBody({ onCrash: 'rerun' }),
      diesInBody({ onCrash: 'rerun' }),
    ],
  },
  'crash-with-a-rerun-asked-for': {
    left: left('the question whether a body may run again', 'toolExec', {
      tools: [{ name: 'work', onCrash: 'ask' }],
      answers: { c1: 'approve' },
      turns: [completed()],
      ran: ['work c1 2'],
    }),
    acts: [diesInBody(asks), diesAsking({ tools: [quick('work', asks)] })],
  },
  'crash-in-a-rerun-that-was-approved': {
    left: left('a body cut in its second run, which was allowed; the third is not', 'toolExec', {
      tools: [{ name: 'work', onCrash: 'ask' }],
      answers: { c1: 'deny' },
      turns: [completed()],
    }),
    acts: [
      diesInBody(asks),
      dies(() => {
        const { tool, begun } = endless('work', asks)
        return {
          options: { tools: [tool] },
          async reached(agent) {
            await asked(agent)
            await answer(agent, 'c1', 'approve')
            await begun
          },
        }
      }),
    ],
  },
  'crash-on-the-brink-of-the-recovery-limit': {
    left: left('a turn that the next opening finds cut short once too often', 'stepRequest.streaming', {
      turns: [{ turn: 1, reason: { kind: 'interrupted', cause: 'recovery-limit' } }],
    }),
    acts: [1, 2, 3, 4].map((n) => diesInAnswer(text(`Try ${n}`))),
  },
  'crash-after-progress': {
    left: left('cut short four times, but not in a row: a result came between', 'toolExec', {
      tools: [{ name: 'work', onCrash: 'rerun' }],
      turns: [completed()],
      ran: ['work c2 2'],
    }),
    acts: [
      diesInAnswer(text('Try 1')),
      diesInAnswer(text('Try 2')),
      diesInAnswer(text('Try 3')),
      diesInBody({ mode: 'exclusive', onCrash: 'rerun' }, [call('look', 'c1'), call('work', 'c2')]),
    ],
  },
  'crash-to-be-interrupted': {
    left: left('a turn that recovery closes instead of carrying it on', 'toolExec', {
      options: { recovery: 'interrupt' },
      tools: [{ name: 'work', onCrash: 'rerun' }],
      turns: [{ turn: 1, reason: { kind: 'interrupted' } }],
      parked: ['for the next turn'],
    }),
    acts: [
      dies(() => {
        const { tool, begun } = endless('work', { onCrash: 'rerun' })
        return {
          options: { model: says([[call('work', 'c1')]]), tools: [tool] },
          async reached(agent) {
            await begun
            agent.followup('for the next turn')
          },
        }
      }),
    ],
  },
  'crash-in-pre-step-to-be-interrupted': {
    left: left('a message claimed, and given back by recovery', 'preStep', {
      options: { recovery: 'interrupt' },
      wake: true,
      turns: [{ turn: 1, reason: { kind: 'interrupted' } }, completed(2)],
    }),
    acts: [diesInHook('agent/pre-step')],
  },
  'resumed-and-finished': {
    left: left('a turn cut short in every state, and finished all the same', 'idle'),
    acts: [
      diesInHook('agent/pre-step'),
      diesInAnswer(text('Hal')),
      dies(() => ({ options: { model: says([fails('TIMEOUT')]) }, reached: (agent) => agent.whenQuiet() })),
      async (stage) => {
        const { tool, begun } = endless('work', { onCrash: 'rerun' })
        const agent = await stage.open({
          model: says([[call('work', 'c1'), call('look', 'c2')]]),
          tools: [tool, look],
        })
        stage.clock.pass(10_000)
        await begun
        await settle()
        await stage.die(agent)
      },
      diesInHook('agent/turn-stopping', { tools: [quick('work', { onCrash: 'rerun' }), look] }),
      finishes(),
    ],
  },
})
