/**
 * Tools with effects, one for each way to recover. A body appends to the witness file as it begins and as it is done,
 * each line one write with O_APPEND; in between it does its effect, a line in another file.
 */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { tool } from '../../dist/index.js'
import { numberOf } from './random.mjs'

/**
 * @typedef {object} WitnessLine
 * @property {string} session
 * @property {string} tool
 * @property {string} callId
 * @property {number} run
 * @property {string} key the idempotency key
 * @property {'began' | 'effect' | 'done' | 'probed'} what
 * @property {'done' | 'not-done'} [answer] of a probe
 */

const parameters = { type: 'object', properties: { token: { type: 'string' } }, required: ['token'] }

/** @param {{ session: string, witness: string }} place */
export function effectTools({ session, witness }) {
  const write = (/** @type {WitnessLine} */ line) => appendFileSync(witness, `${JSON.stringify(line)}\n`)
  /**
   * @param {string} name
   * @param {'exclusive' | 'parallel'} mode
   * @param {Parameters<typeof tool>[0]['onCrash']} onCrash
   */
  const effect = (name, mode, onCrash) =>
    tool({
      name,
      description: `An effect: ${name}`,
      parameters,
      mode,
      ...(onCrash === undefined ? {} : { onCrash }),
      async execute(_, { callId, run, idempotencyKey }) {
        const about = { session, tool: name, callId, run, key: idempotencyKey }
        write({ ...about, what: 'began' })
        await pause(10 + (numberOf(`${callId} before`) % 60))
        write({ ...about, what: 'effect' })
        await pause(numberOf(`${callId} after`) % 40)
        write({ ...about, what: 'done' })
        return `done ${idempotencyKey}`
      },
    })
  return [
    effect('effect_unknown', 'exclusive', undefined),
    effect('effect_rerun', 'parallel', 'rerun'),
    effect('effect_ask', 'exclusive', 'ask'),
    effect('effect_probe', 'parallel', async ({ callId, run, idempotencyKey: key }) => {
      const done = readWitness(witness).some((line) => line.key === key && line.what === 'effect')
      const answer = done ? 'done' : 'not-done'
      write({ session, tool: 'effect_probe', callId, run, key, what: 'probed', answer })
      return done ? { kind: 'done', value: `found ${key}` } : { kind: 'not-done' }
    }),
  ]
}

/** The whole lines of a witness file, none where there is no file. @param {string} path @returns {WitnessLine[]} */
export function readWitness(path) {
  if (!existsSync(path)) return []
  return readFileSync(path, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line))
}
