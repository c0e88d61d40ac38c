/** One act of a life: `node act.mjs JSON`. Ends with 0 once it is over and its store is closed, unless it dies. */
import { FILES } from './lives.mjs'
import { setStage } from './stage.mjs'

/** @typedef {{ path: string, file: string, life: number, act: number }} Work life, act: from 0 */

const { path, file, life, act } = /** @type {Work} */ (JSON.parse(process.argv[2] ?? 'null'))
const { sessions, acts } = FILES[file]?.[life] ?? { sessions: {}, acts: [] }
const [[name = '', { id = name } = {}] = []] = Object.entries(sessions)
const stage = setStage({ path, session: id, act })
await acts[act]?.(stage)
await stage.store[Symbol.asyncDispose]()
// What hangs in a life hangs for good.
process.exit(0)
