/** Visits the files of a folder in the order of their paths, without following links or entering what tools generate. */
import type { Dirent } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { locate, openFolder, shownPath } from './confine.ts'
import { fileError, notAFolder, notFound } from './errors.ts'

/** Not entered unless the walk starts there. */
export const SKIPPED_FOLDERS: readonly string[] = [
  '.git',
  '.hg',
  '.svn',
  'node_modules',
  'dist',
  'build',
  'target',
  'coverage',
  '.next',
  '.cache',
  '.venv',
  '__pycache__',
]

/** A file's path with slashes, from the root and from where the walk started. */
export interface WalkedFile {
  readonly shown: string
  readonly below: string
}

/**
 * Sorted by code unit, regular files only. A folder that cannot be read is passed over.
 * @throws WorkspaceError OUTSIDE_ROOT, NOT_FOUND, NOT_A_FOLDER; the signal's reason
 */
export async function* filesUnder(root: string, path: string, signal: AbortSignal): AsyncGenerator<WalkedFile> {
  const place = await locate(root, path)
  if (!place.exists) throw notFound(path)
  const kind = await stat(place.real).catch((error: unknown) => Promise.reject(fileError(error, path)))
  if (!kind.isDirectory()) throw notAFolder(path)
  const waiting: Entry[] = [{ real: place.real, isFolder: true }]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    signal.throwIfAborted()
    if (next.isFolder) waiting.push(...(await entriesOf(root, next.real)).reverse())
    else yield { shown: shownPath(root, next.real), below: shownPath(place.real, next.real) }
  }
}

interface Entry {
  readonly real: string
  readonly isFolder: boolean
}

async function entriesOf(root: string, folder: string): Promise<Entry[]> {
  // Gone, swapped for a link, or not ours to read: the rest can still be shown.
  const entries = await read(root, folder).catch(() => [])
  return entries
    .filter((entry) => (entry.isDirectory() ? !SKIPPED_FOLDERS.includes(entry.name) : entry.isFile()))
    .map((entry) => ({ real: join(folder, entry.name), isFolder: entry.isDirectory() }))
    .sort((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1))
}

async function read(root: string, folder: string): Promise<Dirent[]> {
  const { handle, path } = await openFolder(root, folder)
  try {
    return await readdir(path, { withFileTypes: true })
  } finally {
    await handle.close()
  }
}

/** With its slash a folder sorts as the paths of its files do. */
const sortKey = ({ real, isFolder }: Entry): string => (isFolder ? `${real}/` : real)
