/** Many sessions in one process, of which a few work. */
import { alone, inFolder } from '../harness/alone.mjs'

const COLUMNS = {
  name: '',
  heap: 'heap MB, idle',
  rss: 'RSS MB, idle',
  peakHeap: 'heap MB, at most',
  peakRss: 'RSS MB, at most',
  opened: 's to open all',
  turns: 'turns/s at work',
}

/** @type {import('../harness/table.mjs').Benchmark} */
export const sessions = {
  about: 'sessions of one turn in one process and one SQLite file; then some of them take turns',
  async run(pace) {
    const job = { sessions: pace.of(10_000, 200), working: pace.of(100, 20), turns: pace.of(20, 5), deltas: 20 }
    const { hibernated, openedSeconds, idle, peak, turnsPerSecond } =
      /** @type {import('../processes/sessions.mjs').Taken} */ (
        await inFolder((folder) => alone('sessions', { folder, ...job }, { node: ['--expose-gc'] }))
      )
    const name = `${job.sessions} sessions, ${job.working} at work, the others ${hibernated ? 'hibernated' : 'awake'}`
    const row = { name, heap: idle.heap, rss: idle.rss, peakHeap: peak.heap, peakRss: peak.rss }
    const rows = [{ ...row, opened: openedSeconds, turns: turnsPerSecond }]
    return [{ id: 'sessions', title: 'Many sessions in one process', columns: COLUMNS, rows }]
  },
}
