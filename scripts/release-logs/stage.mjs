/** What an act has at hand: the store, a clock, and agents whose ids, times and chances are the same in every run. */
import { scripted } from '../../dist/adapters.js'
import { createAgent } from '../../dist/index.js'
import { sqliteStore } from '../../dist/log.js'
import { random } from '../crash/random.mjs'
import { fixedClock } from './clock.mjs'

/** @typedef {Awaited<ReturnType<typeof createAgent>>} Agent */
/** @typedef {Partial<import('../../dist/index.js').AgentOptions>} Options */

/**
 * @typedef {object} Stage
 * @property {import('../../dist/log.js').LogStore} store
 * @property {string} session the name of the life's first session
 * @property {import('./clock.mjs').FixedClock} clock
 * @property {(options?: Options) => Promise<Agent>} open an agent of that session, unless the options name another
 * @property {(...agents: readonly Agent[]) => Promise<never>} die once what they recorded is stored
 */

/** 2025-06-15, so that a log does not depend on the day it was written. */
const BEGINNING = 1_750_000_000_000
/** Between acts. */
const PAUSE_MS = 600_000

/** @param {{ path: string, session: string, act: number }} where act: from 0 @returns {Stage} */
export function setStage({ path, session, act }) {
  const store = sqliteStore(path)
  const clock = fixedClock(BEGINNING + act * PAUSE_MS)
  let ids = 0
  return {
    store,
    session,
    clock,
    open: (options = {}) =>
      createAgent({
        store,
        sessionId: session,
        model: says([]),
        clock,
        random: random(`${session} ${act}`),
        newId: () => `m${act + 1}-${++ids}`,
        ...options,
        plugins: [telling(clock), ...(options.plugins ?? [])],
      }),
    async die(...agents) {
      await settle()
      for (const agent of agents) await agent.session.flush()
      process.kill(process.pid, 'SIGKILL')
      // The signal is on its way.
      return new Promise(() => {})
    },
  }
}

/**
 * Time goes on with what happens, by steps that follow from the events' places.
 * @param {import('./clock.mjs').FixedClock} clock
 * @returns {(agent: Agent) => void}
 */
const telling = (clock) => (agent) => {
  agent.on('session/event', ({ seq, type }) => clock.tick(type === 'assistant/chunk' ? 2 + (seq % 9) : 10 + (seq % 37)))
}

/** A model that says these, and after them that it is done. @param {readonly import('../../dist/adapters.js').Attempt[]} attempts */
export const says = (attempts) => scripted((_, n) => attempts[n] ?? 'Done.')

/** Lets everything happen that waits for nothing but its turn. */
export async function settle(rounds = 30) {
  for (let i = 0; i < rounds; i++) await new Promise((resolve) => setImmediate(resolve))
}

/** Something that happens once. @returns {{ reached: Promise<void>, hit: () => void }} */
export function moment() {
  let hit = () => {}
  const reached = new Promise((/** @type {(value: void) => void} */ resolve) => {
    hit = resolve
  })
  return { reached, hit: () => hit() }
}

/** A hook or a body that begins and never ends. @param {{ hit: () => void }} begun @returns {() => Promise<never>} */
export const hanging = (begun) => () => {
  begun.hit()
  return new Promise(() => {})
}

/** Waits until so many approvals are asked for, and nothing else happens. @param {Agent} agent @param {number} [count] */
export async function asked(agent, count = 1) {
  while (agent.approvals().length < count) await settle(1)
  await settle()
  await agent.session.flush()
  return agent.approvals()
}

/** Answers an approval that waits. @param {Agent} agent @param {string} callId @param {'approve' | 'deny'} how @param {{ by?: string, reason?: string }} [words] */
export async function answer(agent, callId, how, words = {}) {
  const pending = agent.approvals().find((one) => one.callId === callId)
  if (pending === undefined) throw new Error(`Nobody asks for ${callId}`)
  await agent[how](callId, { digest: pending.argumentsDigest, run: pending.run, ...words })
}
