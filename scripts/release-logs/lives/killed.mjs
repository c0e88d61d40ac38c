/** A file as a killed process left it: what it appended last stands in the write-ahead log. */
import { text, toolCall } from '../../../dist/adapters.js'
import { endless, quick } from '../bodies.mjs'
import { completed, left } from '../life.mjs'
import { says } from '../stage.mjs'

/** @type {readonly import('../life.mjs').Life[]} */
export const killed = [
  {
    sessions: {
      'killed-at-rest': left('a session at rest, whose last message is in the write-ahead log', 'idle', {
        wake: true,
        turns: [completed(2)],
      }),
      'killed-in-a-body': left('a session whose body ran when the process was killed', 'toolExec', {
        tools: [{ name: 'work', onCrash: 'rerun' }, { name: 'look' }],
        turns: [completed()],
        ran: ['look c2 1', 'work c1 2'],
      }),
    },
    acts: [
      async ({ open }) => {
        const agent = await open()
        await agent.run('first')
        await agent.close()
      },
      async ({ open, die }) => {
        const rested = await open()
        rested.inject('in the write-ahead log')
        const { tool, begun } = endless('work', { mode: 'exclusive', onCrash: 'rerun' })
        const said = [
          text('Working.', { deltas: 3 }),
          toolCall('work', {}, { id: 'c1' }),
          toolCall('look', {}, { id: 'c2' }),
        ]
        const agent = await open({
          sessionId: 'killed-in-a-body',
          model: says([said]),
          tools: [tool, quick('look')],
        })
        agent.followup('go')
        await begun
        await die(agent, rested)
      },
    ],
  },
]
