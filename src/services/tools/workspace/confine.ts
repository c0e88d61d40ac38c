/**
 * Keeps paths inside the root: what a path really is (links followed) must lie in it, and is looked at again after
 * opening, because a command may swap a folder for a link in between.
 */
import type { Stats } from 'node:fs'
import { constants, existsSync, realpathSync, statSync } from 'node:fs'
import { type FileHandle, lstat, open, readlink, realpath, stat } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { InvalidOption } from '../../errors.ts'
import { errnoOf, fileError, notAFile, notFound, outsideRoot, WorkspaceError } from './errors.ts'

/** Where a path leads. */
export interface Place {
  /** Links resolved; of a path that does not exist, the real folder it would be in and the missing names. */
  readonly real: string
  readonly exists: boolean
  /** From the root, with slashes; '.' is the root. */
  readonly shown: string
}

/** The real path of the root. @throws InvalidOption if it is no folder. */
export function realRoot(root: string): string {
  try {
    const real = realpathSync(root)
    if (statSync(real).isDirectory()) return real
  } catch (error) {
    throw new InvalidOption('root', `"${root}" cannot be opened`, { cause: error })
  }
  throw new InvalidOption('root', `"${root}" is not a folder`)
}

/** @throws WorkspaceError OUTSIDE_ROOT, INVALID_PATH */
export async function locate(root: string, path: string): Promise<Place> {
  if (path.includes('\0')) throw new WorkspaceError('INVALID_PATH', 'A path cannot hold a NUL character')
  const absolute = resolve(root, path)
  const missing: string[] = []
  for (let existing = absolute; ; existing = dirname(existing)) {
    const real = await realIfAny(existing, path)
    if (real === undefined) {
      missing.unshift(basename(existing))
      continue
    }
    if (!isInside(root, real)) throw outsideRoot(path)
    const whole = join(real, ...missing)
    return { real: whole, exists: missing.length === 0, shown: shownPath(root, whole) }
  }
}

const isInside = (root: string, real: string): boolean => {
  const way = relative(root, real)
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way)
}

/** From the root, with slashes. */
export const shownPath = (root: string, real: string): string => relative(root, real).split(sep).join('/') || '.'

async function realIfAny(absolute: string, path: string): Promise<string | undefined> {
  try {
    return await realpath(absolute)
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT' && errnoOf(error) !== 'ENOTDIR') throw fileError(error, path)
  }
  // A link to nothing is there all the same: what is written through it would land wherever it points.
  const isLink = await lstat(absolute).then(
    () => true,
    () => false,
  )
  if (isLink) throw outsideRoot(path)
  return undefined
}

/**
 * Opens a regular file for reading; the caller closes it.
 * @throws WorkspaceError OUTSIDE_ROOT, NOT_FOUND, NOT_A_FILE, NO_PERMISSION
 */
export async function openFile(
  root: string,
  path: string,
): Promise<{ handle: FileHandle; stats: Stats; place: Place }> {
  const place = await locate(root, path)
  if (!place.exists) throw notFound(path)
  try {
    // Before opening too: opening a pipe or a device may wait, or do something.
    if (!(await stat(place.real)).isFile()) throw notAFile(path)
    const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
    const handle = await open(place.real, flags)
    try {
      const stats = await demandInside({ root, path, handle })
      if (!stats.isFile()) throw notAFile(path)
      return { handle, stats, place }
    } catch (error) {
      await handle.close()
      throw error
    }
  } catch (error) {
    throw fileError(error, path)
  }
}

/** What was opened must lie inside the root. */
async function demandInside(opened: { root: string; path: string; handle: FileHandle }): Promise<Stats> {
  const { root, path, handle } = opened
  const stats = await handle.stat()
  if (existsSync(DESCRIPTORS)) {
    // The kernel's own word on what is open; nothing that happens to the path can change it.
    if (!isInside(root, await readlink(`${DESCRIPTORS}/${handle.fd}`))) throw outsideRoot(path)
    return stats
  }
  const found = await stat((await locate(root, path)).real)
  if (found.ino !== stats.ino || found.dev !== stats.dev) throw outsideRoot(path)
  return stats
}

/** On Linux: what this process has open, by descriptor. */
const DESCRIPTORS = '/proc/self/fd'

/** A folder held open; the caller closes the handle. */
export interface OpenFolder {
  readonly handle: FileHandle
  /** Names under it are names in this very folder, on Linux even if something else has taken its place. */
  readonly path: string
}

/** @throws WorkspaceError OUTSIDE_ROOT, NOT_FOUND, NOT_A_FOLDER, NO_PERMISSION */
export async function openFolder(root: string, folder: string): Promise<OpenFolder> {
  const shown = shownPath(root, folder)
  try {
    const handle = await open(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
    try {
      await demandInside({ root, path: shown, handle })
    } catch (error) {
      await handle.close()
      throw error
    }
    return { handle, path: existsSync(DESCRIPTORS) ? `${DESCRIPTORS}/${handle.fd}` : folder }
  } catch (error) {
    throw fileError(error, shown)
  }
}
