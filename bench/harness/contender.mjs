/** What every contender is to the workloads: a program with a fake model and one tool, and conversations with it. */
import { existsSync } from 'node:fs'

/**
 * @typedef {object} Setup
 * @property {import('./script.mjs').Script} script
 * @property {'memory' | 'sqlite' | 'sqlite-full'} store `sqlite` as the contender comes; `-full` synced at every commit.
 * @property {string} folder Empty and its own, for what it keeps.
 * @property {boolean} [unwatched] Nobody reads along: deltas are counted in what is kept.
 */

/**
 * What came to pass since it was last asked, counted where it arrives: deltas at who reads them, calls in the tool's body,
 * history in the messages of the model's last request.
 * @typedef {{ deltas: number, calls: number, requests: number, history: number }} Seen
 */

/**
 * @typedef {object} Chat
 * @property {(prompt: string) => Promise<void>} turn From a message to the end of its answer, and all that is promised of it.
 * @property {() => Promise<void>} close
 * @property {() => Promise<number>} [logged] The deltas in its log.
 * @property {() => Promise<boolean>} [hibernate] False if it cannot.
 */

/**
 * @typedef {object} Program
 * @property {string} keeps What outlives the process, in a few words.
 * @property {(id: string) => Promise<Chat>} open A new conversation; the model's answers begin anew.
 * @property {() => Seen} seen Counts since it was last asked.
 * @property {() => Promise<void>} end
 */

/** @typedef {(setup: Setup) => Promise<Program>} Start */

/** The project's own are in contenders/, those of bench/package.json in peers/. @param {string} name @returns {Promise<Start>} */
export async function contender(name) {
  for (const folder of ['contenders', 'peers']) {
    const file = new URL(`../${folder}/${name}.mjs`, import.meta.url)
    if (existsSync(file)) return (await import(file.href)).start
  }
  throw new Error(`There is no contender "${name}"`)
}

/** Counters that start again when they are read. */
export function counters() {
  const none = { deltas: 0, calls: 0, requests: 0, history: 0 }
  let now = { ...none }
  return {
    /** @returns {Seen} */
    get now() {
      return now
    },
    /** @returns {Seen} */
    take() {
      const taken = now
      now = { ...none }
      return taken
    },
  }
}
