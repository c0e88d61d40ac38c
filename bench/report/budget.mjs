/** What Pawl is held to: figures of one run, most of them ratios, for absolute ones are those of a machine. */
import { figure, named, nth } from './results.mjs'

/** @typedef {{ what: string, measured: number, bound: 'at most' | 'at least', limit: number, unit: string }} Held */

/** @param {readonly import('./results.mjs').Result[]} results @returns {Held[]} those that were measured */
export function heldTo(results) {
  const of = (
    /** @type {string} */ table,
    /** @type {ReturnType<typeof named> | ReturnType<typeof nth>} */ row,
    key = 'median',
  ) => figure(results, { table, row, key })
  const step = (/** @type {string} */ table, /** @type {string} */ other) =>
    of(table, named('Pawl')) / of(table, named(other))
  const state = (/** @type {string} */ name) =>
    of(
      'idle',
      (/** @type {import('../harness/table.mjs').Row} */ row) =>
        row.name === 'Pawl, its log on disk' && row.state === name,
    )
  /** @type {[what: string, measured: number, bound: Held['bound'], limit: number, unit: string][]} */
  const lines = [
    ['a step in memory', step('steps-memory', 'AI SDK'), 'at most', 0.4, '× AI SDK'],
    ['a step on disk', step('steps-disk', 'two commits of a worker'), 'at most', 2.4, '× two commits of a worker'],
    [
      'a step on disk',
      step('steps-disk', 'LangGraph, SQLite saver'),
      'at most',
      0.3,
      '× LangGraph with its SQLite saver',
    ],
    ['more a step per ms that a sync is later', of('slow-disk', nth(1), 'growth'), 'at most', 2.3, 'ms, delayed 4 ms'],
    ['more a step per ms that a sync is later', of('slow-disk', nth(2), 'growth'), 'at most', 2.3, 'ms, delayed 20 ms'],
    ['turn 200', of('chat', named('Pawl'), 'growth'), 'at most', 1.1, '× turn 10'],
    ['turn 2,000', of('chat-long', named('Pawl'), 'growth'), 'at most', 1.2, '× turn 10'],
    ['deltas into a log in memory', of('answer', named('Pawl')), 'at least', 600_000, 'a second'],
    ['deltas into a log on disk', of('answer', named('Pawl, SQLite')), 'at least', 400_000, 'a second'],
    ['events of a socket to chunks', of('sse-tokens', named('pawl')), 'at least', 300_000, 'a second'],
    [
      'events of a socket to a log on disk',
      of('sse-tokens', named('pawl, to the SQLite log')),
      'at least',
      150_000,
      'a second',
    ],
    ['the first word, later than the adapter’s', of('first-token', named('later by')), 'at most', 3, 'ms'],
    ['200 turns, store open', of('reopen', nth(0), 'open'), 'at most', 5, 'ms to open'],
    ['200 turns, store opened anew', of('reopen', nth(0), 'anew'), 'at most', 15, 'ms to open'],
    ['1,000,000 events, 1,000 a turn', of('reopen', nth(1), 'open'), 'at most', 50, 'ms to open'],
    ['1,000,000 events, 32 a turn', of('reopen', nth(2), 'open'), 'at most', 150, 'ms to open'],
    ['log rows of one more turn', of('bytes', nth(1), 'marginal'), 'at most', 700, 'bytes'],
    ['an agent that has done nothing', state('fresh'), 'at most', 8_000, 'bytes of heap'],
    ['an agent after a turn, without its log', state('after a turn'), 'at most', 10_000, 'bytes of heap'],
    ['an agent that hibernates', state('hibernated'), 'at most', 1_000, 'bytes of heap'],
    ['10,000 sessions, 100 at work', of('sessions', nth(0), 'peakRss'), 'at most', 300, 'MB of memory'],
    ['event loop, 1,000 agents streaming, memory', of('streams', nth(0), 'p99'), 'at most', 20, 'ms late, p99'],
    ['event loop, 1,000 agents streaming, SQLite', of('streams', nth(1), 'p99'), 'at most', 20, 'ms late, p99'],
    [
      'a cancel from another process, 8 appending',
      of('processes', nth(2), 'cancelMax'),
      'at most',
      250,
      'ms, the slowest',
    ],
  ]
  return lines
    .map(([what, measured, bound, limit, unit]) => ({ what, measured, bound, limit, unit }))
    .filter(({ measured }) => !Number.isNaN(measured))
}

/** @param {Held} held */
export const isMet = ({ measured, bound, limit }) => (bound === 'at most' ? measured <= limit : measured >= limit)

/** @param {readonly Held[]} held @returns {Omit<import('../harness/table.mjs').Table, 'id'>} */
export const budgetTable = (held) => ({
  title: 'What Pawl is held to, in this run',
  columns: { what: '', measured: 'measured', bound: '', limit: 'limit', unit: '', met: 'met' },
  rows: held.map((line) => ({ ...line, met: isMet(line) ? 'yes' : 'no' })),
})
