/** Reads text files whole, within bounds; binary and huge ones are refused. */
import { openFile } from './confine.ts'
import { fileError, WorkspaceError } from './errors.ts'

/** A NUL byte in the first bytes is what tells binary from text; git looks as far. */
const SNIFFED_BYTES = 8000

/** @throws WorkspaceError TOO_LARGE_FILE over `maxBytes`, BINARY_FILE, and what opening throws. */
export async function readText(root: string, path: string, maxBytes: number): Promise<string> {
  const { handle, stats } = await openFile(root, path)
  try {
    if (stats.size > maxBytes) {
      const way = 'look for what you need with search_text, or cut it out with run_command'
      throw new WorkspaceError('TOO_LARGE_FILE', `"${path}" has ${stats.size} bytes, more than ${maxBytes}: ${way}`)
    }
    const bytes = await handle.readFile()
    if (bytes.subarray(0, SNIFFED_BYTES).includes(0)) {
      throw new WorkspaceError('BINARY_FILE', `"${path}" is not a text file`)
    }
    return bytes.toString('utf8')
  } catch (error) {
    throw fileError(error, path)
  } finally {
    await handle.close()
  }
}

/** The first `max` code units of `text`, without half a character at the end. */
export function cut(text: string, max: number): string {
  if (text.length <= max) return text
  const high = text.charCodeAt(max - 1)
  return text.slice(0, high >= 0xd800 && high <= 0xdbff ? max - 1 : max)
}
