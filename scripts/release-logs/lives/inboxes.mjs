/** Messages that wait in the inbox, and commands that wait in the mailbox. */
import { gate, pause, text, toolCall } from '../../../dist/adapters.js'
import { quick } from '../bodies.mjs'
import { aborted, atRest, completed, each, left } from '../life.mjs'
import { asked, says, settle } from '../stage.mjs'

/** @typedef {import('../../../dist/log.js').PostedCommand} PostedCommand */
/** @typedef {import('../life.mjs').Act} Act */

const call = (/** @type {string} */ name, /** @type {string} */ id) => toolCall(name, { of: id }, { id })
const pay = quick('pay', { needsApproval: true })

/** Half an answer, and a process that dies in it. @type {Act} */
const diesInAnswer = async ({ open, die }) => {
  const held = gate()
  const agent = await open({ model: says([[text('Half'), pause(held)]]) })
  agent.followup('go')
  await held.reached
  await die(agent)
}

/** A process that owns nothing and leaves commands. @param {...PostedCommand} commands @returns {Act} */
const posts =
  (...commands) =>
  async ({ store, session }) => {
    for (const command of commands) await store.post(session, command)
  }

/** @param {'followup' | 'steer' | 'inject'} kind @param {string} id @returns {PostedCommand} */
const said = (kind, id) => ({
  id,
  kind,
  message: { id, role: 'user', content: [{ type: 'text', text: `posted as ${kind}` }], source: { kind: 'user' } },
})

const byUser = /** @type {const} */ ({ kind: 'user' })
const digest = `sha256:${'0'.repeat(64)}`

export const inboxes = each({
  'queues-at-a-crash': {
    left: left('messages in both queues while an answer was cut', 'stepRequest.streaming', {
      turns: [completed(), completed(2), completed(3)],
    }),
    acts: [
      async ({ open, die }) => {
        const held = gate()
        const agent = await open({ model: says([[text('Half'), pause(held)]]) })
        agent.followup('go')
        await held.reached
        agent.followup('the second turn')
        agent.steer('the second step')
        agent.inject('with it')
        agent.followup('the third turn')
        await die(agent)
      },
    ],
  },
  'edited-inbox': {
    left: left('messages replaced, taken out and sent twice before anybody took them', 'idle', {
      wake: true,
      turns: [completed(3)],
    }),
    acts: [
      async ({ open }) => {
        const held = gate()
        const agent = await open({ model: says([[text('One'), pause(held)], 'Two.', 'Three.']) })
        const running = agent.run('go')
        await held.reached
        agent.followup('the same', { requestId: 'same' })
        agent.followup('the same', { requestId: 'same' })
        agent.inbox.remove('same')
        const wrong = agent.steer('a mistke')
        agent.inbox.replace(wrong.id, 'a mistake')
        agent.followup('one too many')
        agent.inbox.remove(agent.inject('never mind').id)
        held.release()
        await running
        await agent.whenIdle()
        agent.inject('cleared')
        agent.inbox.clear()
        agent.inject('stays')
        await agent.close()
      },
    ],
  },
  'mail-at-rest': {
    left: left('commands of every kind posted to a session at rest', 'idle', {
      turns: [completed(2), completed(3)],
      mail: {
        p1: 'taken',
        p2: 'taken',
        p3: 'taken',
        p4: 'DUPLICATE_MESSAGE',
        p5: 'TURN_OVER',
        p6: 'SESSION_IDLE',
        p7: 'APPROVAL_NOT_PENDING',
        p8: 'taken',
      },
    }),
    acts: [
      async ({ open }) => {
        const agent = await open()
        await agent.followup('go', { requestId: 'asked' }).turn
        await agent.close()
      },
      posts(
        { id: 'p6', kind: 'cancel', turn: 9, cause: byUser },
        { id: 'p5', kind: 'cancel', turn: 1, cause: byUser, keepInbox: true },
        { id: 'p7', kind: 'approve', callId: 'c9', run: 0, digest, by: 'somebody' },
        said('inject', 'p1'),
        { ...said('steer', 'asked'), id: 'p4' },
        said('followup', 'p2'),
        said('followup', 'p3'),
        { id: 'p8', kind: 'wake' },
      ),
    ],
  },
  'mail-for-an-open-turn': {
    left: left('messages posted to a turn that a crash cut short', 'stepRequest.streaming', {
      turns: [completed(), completed(2)],
      mail: { p1: 'taken', p2: 'taken', p3: 'taken', p4: 'taken' },
    }),
    acts: [
      diesInAnswer,
      posts({ id: 'p4', kind: 'wake' }, said('inject', 'p1'), said('steer', 'p2'), said('followup', 'p3')),
    ],
  },
  'mail-that-cancels-the-open-turn': {
    left: left('a cancel posted to a turn that a crash cut short', 'stepRequest.streaming', {
      turns: [aborted()],
      mail: { p1: 'taken' },
    }),
    acts: [diesInAnswer, posts({ id: 'p1', kind: 'cancel', turn: 1, cause: byUser })],
  },
  'mail-that-answers-approvals': {
    left: left('answers posted to questions of a turn left open', 'toolExec', {
      tools: [{ name: 'pay', mode: 'parallel', needsApproval: true }],
      turns: [completed()],
      ran: ['pay c1 1'],
      mail: { p1: 'APPROVAL_DIGEST_MISMATCH', p2: 'taken', p3: 'taken' },
    }),
    acts: [
      async ({ open, store, session }) => {
        const agent = await open({ model: says([[call('pay', 'c1'), call('pay', 'c2')]]), tools: [pay] })
        agent.followup('pay twice')
        const [first, second] = await asked(agent, 2)
        await agent.close()
        const run = 0
        await posts(
          { id: 'p1', kind: 'approve', callId: 'c1', run, digest },
          { id: 'p2', kind: 'approve', callId: 'c1', run, digest: first?.argumentsDigest ?? '', by: 'somebody' },
          {
            id: 'p3',
            kind: 'deny',
            callId: 'c2',
            run,
            digest: second?.argumentsDigest ?? '',
            reason: 'once is enough',
          },
        )(/** @type {import('../stage.mjs').Stage} */ ({ store, session }))
      },
    ],
  },
  'mail-taken': atRest('commands that were posted and taken by an agent at work', async ({ open, store, session }) => {
    const agent = await open({ model: says([[call('pay', 'c1')]]), tools: [pay] })
    await store.post(session, said('followup', 'p1'))
    const [pending] = await asked(agent)
    const about = { callId: 'c1', run: 0, digest: pending?.argumentsDigest ?? '' }
    await store.post(session, { id: 'p2', kind: 'approve', ...about, by: 'somebody' })
    await store.post(session, { id: 'p3', kind: 'deny', ...about })
    for (const id of ['p1', 'p2', 'p3']) await store.outcome(session, id, new AbortController().signal)
    await settle()
    await agent.whenIdle()
    await agent.close()
  }),
})
