/** An agent inside a statechart of your own: the chart decides when it is asked, and persists it as a session id. */
import { agentActor } from 'pawl'
import { scripted } from 'pawl/adapters'
import { memoryStore } from 'pawl/log'
import { assign, createActor, sendTo, setup, waitFor } from 'xstate'

type DeskEvent = { type: 'ask'; question: string } | { type: 'answered'; text: string }

const desk = setup({
  types: { context: {} as { answers: string[] }, events: {} as DeskEvent, children: {} as { agent: 'agent' } },
  actors: { agent: agentActor({ model: scripted(['Seven.', 'It is prime.']), store: memoryStore() }) },
}).createMachine({
  context: { answers: [] },
  invoke: { src: 'agent', id: 'agent', input: { sessionId: 'desk' } },
  initial: 'free',
  states: {
    free: {
      on: {
        ask: {
          target: 'busy',
          actions: sendTo('agent', ({ event }) => ({ type: 'command.followup', message: event.question })),
        },
      },
    },
    busy: {
      on: {
        answered: {
          target: 'free',
          actions: assign({ answers: ({ context, event }) => [...context.answers, event.text] }),
        },
      },
    },
  },
})

const actor = createActor(desk).start()
// Emitted once the end of the turn is durable, never before.
actor.getSnapshot().children.agent?.on('turn.ended', ({ text }) => actor.send({ type: 'answered', text }))
for (const question of ['How many days has a week?', 'Say something about that number.']) {
  actor.send({ type: 'ask', question })
  await waitFor(actor, (snapshot) => snapshot.matches('free'))
}
console.log(actor.getSnapshot().context.answers.join(' '))
actor.stop()
