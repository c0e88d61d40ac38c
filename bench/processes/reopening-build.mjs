/** Lives a conversation of a known shape into a file, and leaves. */
import { start } from '../contenders/pawl.mjs'
import { answerJob } from '../harness/alone.mjs'

/** @typedef {{ folder: string, turns: number, deltas: number }} Job */

await answerJob(async (/** @type {Job} */ { folder, turns, deltas }) => {
  const program = await start({ script: { deltas }, store: 'sqlite', folder, unwatched: true })
  const chat = await program.open('chat')
  for (let turn = 1; turn <= turns; turn++) await chat.turn(`Question ${turn}?`)
  await chat.close()
  await program.end()
})
