/** The process of one contender: reads an answer when told, and says how long that took. */
import { contenderOf } from './contenders.mjs'

/** @typedef {{ contender: string, baseURL: string, folder: string }} Job */
/** @typedef {{ ms: number, cpuMs: number, read: import('./contenders.mjs').Read, logged?: number | undefined }} Reading */

process.on('message', async (/** @type {Job} */ job) => {
  const { read, logged } = await (await contenderOf(job.contender))(job)
  const cpu = process.cpuUsage()
  const begun = performance.now()
  const what = await read()
  const ms = performance.now() - begun
  const { user, system } = process.cpuUsage(cpu)
  const reading = { ms, cpuMs: (user + system) / 1_000, read: what, logged: await logged?.() }
  process.send?.(reading)
})
process.on('disconnect', () => process.exit())
