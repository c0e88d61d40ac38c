/** The built-in tools of a workspace: a folder whose files a model may look at and, when allowed, change. */
import { MAX_TIMER_MS } from '../../clock.ts'
import { InvalidOption } from '../../errors.ts'
import type { Tool } from '../contract.ts'
import { realRoot } from './confine.ts'
import { listFiles } from './list-files.ts'
import { readFile } from './read-file.ts'
import { runCommand } from './run-command.ts'
import { searchText } from './search-text.ts'
import { writeFile } from './write-file.ts'

export interface WorkspaceOptions {
  /** The folder; no file tool leaves it, whatever links or `..` say. */
  readonly root: string
  /** Variables for commands, beside PATH, HOME, LANG, TERM and a few more of this process. */
  readonly env?: Readonly<Record<string, string>>
  /** ms for one search_text; 10,000 by default. */
  readonly searchTimeoutMs?: number
  /** ms a command gets between SIGTERM and SIGKILL; 2,000 by default. */
  readonly graceMs?: number
}

/**
 * list_files, read_file and search_text (parallel, run again after a crash), then write_file and run_command (alone,
 * with an approval each, unknown after a crash).
 * @throws InvalidOption if the root is no folder, or a time is not one.
 */
export function workspaceTools(options: WorkspaceOptions): readonly Tool[] {
  const { env = {}, searchTimeoutMs = 10_000, graceMs = 2_000 } = options
  for (const [option, ms] of Object.entries({ searchTimeoutMs, graceMs })) {
    if (!(ms > 0 && ms <= MAX_TIMER_MS))
      throw new InvalidOption(option, `must be more than 0 ms, at most ${MAX_TIMER_MS}`)
  }
  const root = realRoot(options.root)
  return Object.freeze([
    listFiles(root),
    readFile(root),
    searchText(root, searchTimeoutMs),
    writeFile(root),
    runCommand(root, { env, graceMs }),
  ])
}
