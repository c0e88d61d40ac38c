/** `search_text`: the lines that hold a text or match a regular expression, with their places. */
import { stat } from 'node:fs/promises'
import type { Tool } from '../contract.ts'
import { tool } from '../tool.ts'
import { locate } from './confine.ts'
import { fileError, notFound, WorkspaceError } from './errors.ts'
import { regexMatcher, textMatcher } from './line-matcher.ts'
import { cut, readText } from './text-file.ts'
import { filesUnder } from './walk.ts'

export const MAX_MATCHES = 200
/** Bytes; larger files are passed over, and counted. */
export const MAX_SEARCHED_BYTES = 2 * 1024 * 1024
const MAX_LINE_CHARS = 300

type SearchArgs = { query: string; path?: string; regex?: boolean }

/** `timeoutMs` bounds one whole search; a regular expression that is still at it is stopped for good. */
export function searchText(root: string, timeoutMs: number): Tool {
  return tool({
    name: 'search_text',
    description:
      `Searches the text files of the workspace and gives at most ${MAX_MATCHES} lines as path:line: text. The query ` +
      'is plain text, case counts; with `regex` it is a JavaScript regular expression, applied line by line.',
    parameters: {
      type: 'object',
      properties: {
        query: { type: 'string', minLength: 1, maxLength: 1000 },
        path: { type: 'string', description: 'A folder or a file, relative to the root. Default: the root.' },
        regex: { type: 'boolean', description: 'Default: false.' },
      },
      required: ['query'],
      additionalProperties: false,
    },
    mode: 'parallel',
    onCrash: 'rerun',
    execute: (args, { signal }) => search({ root, timeoutMs, signal }, args as SearchArgs),
  })
}

interface Scope {
  readonly root: string
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

async function search({ root, timeoutMs, signal }: Scope, { query, path = '.', regex }: SearchArgs): Promise<string> {
  const deadline = AbortSignal.timeout(timeoutMs)
  const either = AbortSignal.any([signal, deadline])
  const matcher = regex === true ? regexMatcher(query, either) : textMatcher(query)
  const found: string[] = []
  const passed = { huge: 0 }
  try {
    for await (const { file, text } of textsOf({ root, path, signal: either, passed })) {
      for (const { number, line } of await matcher.matches(text, MAX_MATCHES + 1 - found.length)) {
        found.push(`${file}:${number}: ${cut(line, MAX_LINE_CHARS)}`)
      }
      if (found.length > MAX_MATCHES) break
    }
  } catch (error) {
    if (!deadline.aborted || signal.aborted) throw error
    const way = regex === true ? 'simplify the expression, search for plain text, or name a path' : 'name a path'
    throw new WorkspaceError('SEARCH_TIMEOUT', `The search took longer than ${timeoutMs} ms: ${way}`)
  } finally {
    await matcher.stop()
  }
  return reportOf(found, passed.huge)
}

function reportOf(found: readonly string[], huge: number): string {
  const shown = found.length === 0 ? ['[no matches]'] : found.slice(0, MAX_MATCHES)
  if (found.length > MAX_MATCHES)
    shown.push(`[${MAX_MATCHES} matches shown, there are more: narrow the query or the path]`)
  if (huge > 0) shown.push(`[${huge} files over ${MAX_SEARCHED_BYTES} bytes were not searched]`)
  return shown.join('\n')
}

interface Searched {
  readonly root: string
  readonly path: string
  readonly signal: AbortSignal
  readonly passed: { huge: number }
}

/** A file named by the caller must be readable; among the files of a folder those that are not text are passed over. */
async function* textsOf({ root, path, signal, passed }: Searched): AsyncGenerator<{ file: string; text: string }> {
  const place = await locate(root, path)
  if (!place.exists) throw notFound(path)
  const kind = await stat(place.real).catch((error: unknown) => Promise.reject(fileError(error, path)))
  if (!kind.isDirectory()) {
    yield { file: place.shown, text: await readText(root, path, MAX_SEARCHED_BYTES) }
    return
  }
  for await (const { shown } of filesUnder(root, path, signal)) {
    const text = await readText(root, shown, MAX_SEARCHED_BYTES).catch((error: unknown) => {
      if (error instanceof WorkspaceError && error.code === 'TOO_LARGE_FILE') passed.huge += 1
      return undefined
    })
    if (text !== undefined) yield { file: shown, text }
  }
}
