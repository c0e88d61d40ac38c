/** The events of two small runs, as `pawl log` prints them without the times: the README's event trees. */
import pc from 'picocolors'
import { scripted, text, toolCall, usage } from '../dist/adapters.js'
import { createAgent, tool } from '../dist/index.js'
import { memoryStore } from '../dist/log.js'
import { eventLines } from '../dist/services/terminal/event-list.js'

/** @typedef {import('../dist/adapters.js').Attempt} Attempt */
/** @typedef {import('../dist/index.js').SessionEvent} SessionEvent */

const spent = usage({ inputTokens: 40, outputTokens: 5 })

const clock = tool({
  name: 'clock',
  description: 'Tells the time.',
  parameters: { type: 'object', additionalProperties: false },
  mode: 'parallel',
  onCrash: 'rerun',
  execute: () => '12:00',
})

export const plainTree = () => treeOf('Hi.', [[text('Hello!', { deltas: 2 }), spent]])
export const toolTree = () =>
  treeOf('What time is it?', [
    [toolCall('clock', {}, { id: 'call_1' }), spent],
    [text('Noon.'), spent],
  ])

/** @param {string} prompt @param {readonly Attempt[]} script */
async function treeOf(prompt, script) {
  const agent = await createAgent({ model: scripted(script), store: memoryStore(), tools: [clock], sessionId: 'tree' })
  await agent.run(prompt)
  /** @type {SessionEvent[]} */
  const events = []
  for await (const event of agent.session.events()) events.push(event)
  await agent.close()
  /** @type {string[]} */
  const lines = []
  for await (const line of eventLines(events, pc.createColors(false)))
    lines.push(line.replace(/\d\d:\d\d:\d\d\.\d{3} {2}/, ''))
  return lines.join('\n')
}
