/**
 * Kills real processes and counts from outside what that did: `npm run crash`. With `--trace`, runs under strace
 * instead, which show that each acknowledgement came after the sync that covers it. Exit code 1 if anything that must
 * be 0 is not.
 */
import { parseArgs } from 'node:util'
import { campaign } from './crash/campaign.mjs'
import { setStage } from './crash/stage.mjs'
import { traceWorker, whyNoTrace } from './crash/strace.mjs'
import { table, traceLines } from './crash/table.mjs'

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '1000' },
    terms: { type: 'string', default: '200' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    lanes: { type: 'string', default: '5' },
    bursts: { type: 'string', default: '6' },
    row: { type: 'string', default: '1-3' },
    within: { type: 'string' },
    events: { type: 'string' },
    minutes: { type: 'string' },
    only: { type: 'string' },
    keep: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    trace: { type: 'boolean', default: false },
    turns: { type: 'string', default: '20' },
  },
})
const number = (/** @type {string} */ text) => {
  if (!/^\d{1,6}$/.test(text)) throw new Error(`"${text}" is no number`)
  return Number(text)
}

if (values.trace) trace()
else await crash()

/** Two runs: the store as it is, and one that does not sync, which shows that the check can fail. */
function trace() {
  const why = whyNoTrace()
  if (why !== undefined) throw new Error(why)
  const synced = traceWorker({ turns: number(values.turns) })
  const unsynced = traceWorker({ turns: number(values.turns), unsynced: true })
  console.log(values.json ? JSON.stringify({ synced, unsynced }) : traceLines(synced, unsynced))
  if (synced.violations.length > 0 || unsynced.violations.length === 0) process.exitCode = 1
}

async function crash() {
  const stage = await setStage({ keep: values.keep })
  try {
    const report = await campaign(stage, {
      kills: number(values.kills),
      terms: number(values.terms),
      seed: values.seed,
      lanes: number(values.lanes),
      bursts: number(values.bursts),
      row: [number(values.row.split('-')[0] ?? ''), number(values.row.split('-')[1] ?? '')],
      ...(values.within === undefined ? {} : { withinMs: number(values.within) }),
      ...(values.events === undefined ? {} : { withinEvents: number(values.events) }),
      ...(values.minutes === undefined ? {} : { minutes: number(values.minutes) }),
      ...(values.only === undefined ? {} : { only: number(values.only) }),
      say: (line) => void process.stderr.write(`${line}\n`),
    })
    const given = process.argv.slice(2).filter((word, i, words) => word !== '--seed' && words[i - 1] !== '--seed')
    const again = ['npm run crash --', ...given, '--seed', values.seed].join(' ')
    console.log(values.json ? JSON.stringify({ seed: values.seed, ...report }) : table(report, again))
    if (Object.values(report.defects).some((count) => count > 0)) process.exitCode = 1
  } finally {
    await stage.close()
  }
}
