/** A console that nobody reads. */
import type { Console } from '../../src/cli/console.ts'
import { paletteFor } from '../../src/services/terminal/text.ts'

export const silentConsole = (): Console => {
  const plain = paletteFor({}, { NO_COLOR: '1' })
  return {
    json: true,
    palette: { out: plain, err: plain },
    interactive: false,
    closed: false,
    out() {},
    value() {},
    note() {},
    error() {},
    ready: async () => {},
    flush: async () => {},
  }
}
