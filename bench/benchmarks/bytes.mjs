/** What a conversation takes on disk, every delta kept. */
import { alone, inFolder } from '../harness/alone.mjs'

const DELTAS = 20
const COLUMNS = {
  name: '',
  rows: 'bytes of log rows a turn',
  marginal: 'of each further turn',
  file: 'bytes of file a turn',
  wal: 'WAL at most, bytes',
}

/** @type {import('../harness/table.mjs').Benchmark} */
export const bytes = {
  about: 'a conversation of one step of 20 deltas a turn in a file of its own, closed, measured, and carried on',
  async run(pace) {
    const turns = [pace.of(200, 20), pace.of(1_000, 40)]
    const sizes = /** @type {import('../processes/bytes.mjs').Size[]} */ (
      await inFolder((folder) => alone('bytes', { folder, turns, deltas: DELTAS }))
    )
    const rows = sizes.map((size, i) => {
      const before = sizes[i - 1] ?? { turns: 0, rowBytes: 0 }
      return {
        name: `${size.turns} turns`,
        rows: Math.round(size.rowBytes / size.turns),
        marginal: Math.round((size.rowBytes - before.rowBytes) / (size.turns - before.turns)),
        file: Math.round(size.fileBytes / size.turns),
        wal: size.walBytes,
      }
    })
    return [{ id: 'bytes', title: 'Bytes on disk', columns: COLUMNS, rows }]
  },
}
