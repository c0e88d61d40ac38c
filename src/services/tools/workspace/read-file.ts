/** `read_file`: a text file, or some of its lines; what was left out is said at the end. */
import type { Tool } from '../contract.ts'
import { tool } from '../tool.ts'
import { WorkspaceError } from './errors.ts'
import { cut, readText } from './text-file.ts'

/** Characters of text in one result. */
export const MAX_READ_CHARS = 100_000
/** Bytes of the whole file, whatever part of it is asked for. */
export const MAX_FILE_BYTES = 10 * 1024 * 1024

type ReadArgs = { path: string; startLine?: number; endLine?: number }

export function readFile(root: string): Tool {
  const line = { type: 'integer', minimum: 1 } as const
  return tool({
    name: 'read_file',
    description:
      `Reads a text file of the workspace, at most ${MAX_READ_CHARS} characters at a time. When not all of the file ` +
      'is shown, a last line in brackets says which lines are.',
    parameters: {
      type: 'object',
      properties: {
        path: { type: 'string', description: 'Relative to the root of the workspace.' },
        startLine: { ...line, description: 'First line to show, from 1. Default: 1.' },
        endLine: { ...line, description: 'Last line to show. Default: the last.' },
      },
      required: ['path'],
      additionalProperties: false,
    },
    mode: 'parallel',
    onCrash: 'rerun',
    execute: (args) => read(root, args as ReadArgs),
  })
}

async function read(root: string, { path, startLine = 1, endLine }: ReadArgs): Promise<string> {
  const text = await readText(root, path, MAX_FILE_BYTES)
  if (text === '') return '[the file is empty]'
  const lines = text.split(/(?<=\n)/)
  if (startLine > lines.length || (endLine ?? startLine) < startLine) {
    throw new WorkspaceError(
      'INVALID_RANGE',
      `"${path}" has ${lines.length} lines: there are no lines ${startLine} to ${endLine ?? 'the last'}`,
    )
  }
  const wanted = lines.slice(startLine - 1, endLine)
  const shown = fitting(wanted)
  if (shown.length === lines.length) return text
  if (shown.length === 0) {
    const way = 'this line is too long to be shown whole; look into it with search_text or run_command'
    return `${cut(wanted[0] ?? '', MAX_READ_CHARS)}\n[start of line ${startLine} of ${lines.length}: ${way}]`
  }
  const last = startLine + shown.length - 1
  const more = shown.length < wanted.length ? `; cut here, read on with startLine ${last + 1}` : ''
  return `${shown.join('').replace(/\n?$/, '\n')}[lines ${startLine}-${last} of ${lines.length}${more}]`
}

/** As many whole lines from the first as fit into a result. */
function fitting(lines: readonly string[]): readonly string[] {
  let chars = 0
  const end = lines.findIndex((line) => {
    chars += line.length
    return chars > MAX_READ_CHARS
  })
  return end === -1 ? lines : lines.slice(0, end)
}
