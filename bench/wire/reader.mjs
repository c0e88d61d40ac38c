/** The process of one contender: reads an answer when told, and says how long that took. */
import { contenders } from './contenders.mjs'

/** @typedef {{ ms: number, cpuMs: number, read: import('./contenders.mjs').Read }} Reading */

process.on('message', async (/** @type {{ contender: string, baseURL: string }} */ { contender, baseURL }) => {
  const read = contenders[contender]
  if (read === undefined) throw new Error(`There is no contender "${contender}"`)
  const cpu = process.cpuUsage()
  const begun = performance.now()
  const what = await read(baseURL)
  const ms = performance.now() - begun
  const { user, system } = process.cpuUsage(cpu)
  process.send?.({ ms, cpuMs: (user + system) / 1_000, read: what })
})
process.on('disconnect', () => process.exit())
