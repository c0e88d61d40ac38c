/** Forks: at rest, in the middle, of an open turn with everything under way, of forks. */
import { fails, text, toolCall } from '../../../dist/adapters.js'
import { endless, probe, quick } from '../bodies.mjs'
import { aborted, completed, left } from '../life.mjs'
import { asked, hanging, moment, says } from '../stage.mjs'

const call = (/** @type {string} */ name, /** @type {string} */ id) => toolCall(name, { of: id }, { id })

/** The tools of an open turn that is forked, as its child needs them. */
const underWay = /** @type {const} */ ([
  { name: 'lost', mode: 'parallel' },
  { name: 'again', mode: 'parallel', onCrash: 'rerun' },
  { name: 'seen', mode: 'parallel', onCrash: 'probe', probe: 'done' },
  { name: 'pay', mode: 'parallel', needsApproval: true },
  { name: 'last' },
])

/** @type {readonly import('../life.mjs').Life[]} */
export const forks = [
  {
    sessions: {
      'fork-parent-at-rest': left('a session that was forked three times, and went on', 'idle'),
      'fork-at-rest': left('a fork of all of it', 'idle'),
      'fork-of-the-first-turn': left('a fork of its first turn', 'idle'),
      'fork-of-nothing': left('a fork of none of it', 'idle'),
      'fork-of-a-fork': left('a fork of a fork that had gone on', 'idle'),
    },
    acts: [
      async ({ open }) => {
        const agent = await open()
        await agent.run('first')
        const at = agent.session.head
        await agent.run('second')
        agent.inject('the parent’s')
        await agent.fork({ sessionId: 'fork-at-rest' })
        await agent.fork({ sessionId: 'fork-of-the-first-turn', at })
        await agent.fork({ sessionId: 'fork-of-nothing', at: 0 })
        await agent.run('third')
        await agent.close()
      },
      async ({ open }) => {
        const child = await open({ sessionId: 'fork-at-rest' })
        await child.run('a third of its own')
        await child.fork({ sessionId: 'fork-of-a-fork' })
        await child.close()
      },
    ],
  },
  {
    sessions: {
      'fork-parent-in-its-tools': left('an open turn that was forked, and then cut short by a crash', 'toolExec', {
        tools: underWay,
        answers: { c5: 'approve' },
        turns: [completed(), completed(2)],
        ran: ['again c3 2', 'last c6 1', 'pay c5 1'],
        probed: ['seen c4'],
      }),
      'fork-in-its-tools': left('what its child inherits: nothing that happened is done twice', 'toolExec', {
        tools: underWay,
        turns: [completed()],
        ran: ['last c6 1'],
      }),
      'fork-in-its-tools-carried-on': left('another child, carried on to its end', 'idle'),
      'fork-in-its-tools-to-be-interrupted': left('another child, whose turn is closed', 'toolExec', {
        options: { recovery: 'interrupt' },
        tools: underWay,
        turns: [{ turn: 1, reason: { kind: 'interrupted' } }],
      }),
    },
    acts: [
      async ({ open, die }) => {
        const bodies = [endless('lost'), endless('again', { onCrash: 'rerun' }), endless('seen', { onCrash: probe })]
        const pay = quick('pay', { needsApproval: true })
        const tools = [quick('look'), ...bodies.map(({ tool }) => tool), pay, quick('last', { mode: 'exclusive' })]
        const said = ['look', 'lost', 'again', 'seen', 'pay', 'last'].map((name, i) => call(name, `c${i + 1}`))
        const agent = await open({ model: says([said]), tools })
        agent.followup('go')
        await Promise.all(bodies.map(({ begun }) => begun))
        await asked(agent)
        agent.followup('the parent’s second turn')
        agent.steer('the parent’s next step')
        for (const end of ['', '-carried-on', '-to-be-interrupted'])
          await agent.fork({ sessionId: `fork-in-its-tools${end}` })
        await die(agent)
      },
      async ({ open }) => {
        const tools = [
          quick('lost'),
          quick('again', { onCrash: 'rerun' }),
          quick('seen', { onCrash: probe }),
          quick('pay', { needsApproval: true }),
          quick('last', { mode: 'exclusive' }),
        ]
        const child = await open({ sessionId: 'fork-in-its-tools-carried-on', tools })
        await child.whenIdle()
        await child.close()
      },
    ],
  },
  {
    sessions: {
      'fork-parent-under-a-cancel': left('a turn being cancelled, that was forked', 'preStep', { turns: [aborted()] }),
      'fork-under-a-cancel': left('its child, which finishes the cancel', 'preStep', { turns: [aborted()] }),
    },
    acts: [
      async ({ open, die }) => {
        const begun = moment()
        const agent = await open({ hooks: { 'agent/pre-step': hanging(begun) } })
        agent.followup('go')
        await begun.reached
        void agent.cancel()
        await agent.fork({ sessionId: 'fork-under-a-cancel' })
        await die(agent)
      },
    ],
  },
  {
    sessions: {
      'fork-parent-of-many-points': left('a turn with a retry and a tool, forked where it stood at each', 'idle'),
      'fork-in-an-answer': left('a fork in half an answer', 'stepRequest.streaming', { turns: [completed()] }),
      'fork-while-a-retry-waits': left('a fork before a retry', 'stepRequest.waiting', { turns: [completed()] }),
      'fork-in-pre-step': left('a fork with results claimed for the next step', 'preStep', { turns: [completed()] }),
      'fork-in-turn-stopping': left('a fork before the turn’s end', 'turnStopping', { turns: [completed()] }),
      'fork-of-a-suspension': left('a fork of what a clean close left open', 'stepRequest.waiting', {
        turns: [completed()],
      }),
    },
    acts: [
      async ({ open }) => {
        const agent = await open({ model: says([[text('Half of', { deltas: 4 }), fails('SERVER')]]) })
        agent.followup('go')
        await agent.whenQuiet()
        await agent.close()
      },
      async ({ open, store, session, clock }) => {
        const model = says([[call('look', 'c1')], 'Done.'])
        const agent = await open({ model, tools: [quick('look')] })
        clock.pass(60_000)
        await agent.whenIdle()
        /** @type {Record<string, number>} */
        const after = {}
        for await (const { type, seq } of store.read(session)) after[type] ??= seq + 1
        const lastClaim = await lastSeq(store, session, 'agent/inbox/spliced')
        const lastStep = await lastSeq(store, session, 'step/end')
        await agent.fork({ sessionId: 'fork-in-an-answer', at: (after['assistant/chunk'] ?? 0) + 2 })
        await agent.fork({ sessionId: 'fork-while-a-retry-waits', at: after['llm/retry'] ?? 0 })
        await agent.fork({ sessionId: 'fork-of-a-suspension', at: after['session/suspended'] ?? 0 })
        await agent.fork({ sessionId: 'fork-in-pre-step', at: lastClaim + 1 })
        await agent.fork({ sessionId: 'fork-in-turn-stopping', at: lastStep + 1 })
        await agent.close()
      },
    ],
  },
]

/** @param {import('../../../dist/log.js').LogStore} store @param {string} session @param {string} type */
async function lastSeq(store, session, type) {
  let last = 0
  for await (const { seq } of store.read(session, { types: [type] })) last = seq
  return last
}
