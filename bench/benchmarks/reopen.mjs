/** Opening conversations that exist: with the store open, with a new store, and in a new process. */
import { alone, inFolder } from '../harness/alone.mjs'
import { spread } from '../harness/figures.mjs'

/** Events of a turn of one step that are no text: 8 around the answer, 4 around its deltas. */
const AROUND = 12
const COLUMNS = {
  name: '',
  events: 'events',
  open: 'ms, store open',
  openMax: 'max',
  anew: 'ms, store opened anew',
  anewMax: 'max',
  cold: 'ms, new process',
}

/** @type {import('../harness/table.mjs').Benchmark} */
export const reopen = {
  about: 'opening a conversation that was closed; a new process loads its modules and SQLite on the way',
  async run(pace) {
    const events = pace.of(1_000_000, 3_000)
    const few = { turns: pace.of(200, 20), deltas: 20 }
    const rows = [await open(`${few.turns} turns`, few, pace)]
    for (const each of [1_000, 32]) {
      const shape = { turns: Math.ceil(events / each), deltas: each - AROUND }
      rows.push(
        await open(`${events.toLocaleString('en-US')} events, ${each.toLocaleString('en-US')} a turn`, shape, pace),
      )
    }
    return [{ id: 'reopen', title: 'Opening again', columns: COLUMNS, rows }]
  },
}

/** @param {string} name @param {{ turns: number, deltas: number }} shape @param {import('../harness/pace.mjs').Pace} pace */
async function open(name, shape, pace) {
  return inFolder(async (folder) => {
    await alone('reopening-build', { folder, ...shape })
    const processes = []
    for (let round = 0; round < pace.rounds; round++) {
      const job = { folder, turns: shape.turns, times: pace.of(20, 2) }
      processes.push(/** @type {import('../processes/reopening.mjs').Taken} */ (await alone('reopening', job)))
    }
    const again = spread(processes.flatMap((taken) => taken.open))
    const anew = spread(processes.flatMap((taken) => taken.anew))
    const cold = spread(processes.map((taken) => taken.cold))
    const { events = 0 } = processes[0] ?? {}
    const figures = { open: again.median, openMax: again.max, anew: anew.median, anewMax: anew.max, cold: cold.median }
    return { name, events, ...figures }
  })
}
