/**
 * Where the database lives. Everything here happens before the first connection: once SQLite has a file open, closing
 * any other descriptor on it in this process would drop SQLite's locks.
 */
import { closeSync, existsSync, mkdirSync, openSync, realpathSync, statfsSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { storeFailure } from './driver.ts'

/** Tells the type of the file system that holds a folder, as `statfs(2)` does. */
export type Statfs = (folder: string) => { readonly type: number }

/** Linux magic numbers of file systems whose locks or shared memory do not reach across machines. */
const NETWORK: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB2'],
  [0x5346414f, 'AFS'],
  [0x00c36400, 'Ceph'],
  [0x0bd00bd0, 'Lustre'],
  [0x01021997, '9p'],
  [0x73757245, 'Coda'],
])

/** The path SQLite will use, links resolved, or undefined when no database is there. @throws StoreFailure */
export function findPlace(path: string, statfs: Statfs = statfsSync): string | undefined {
  return guard(path, () => {
    // The WAL first: a database that another process is creating right now is never empty beside a WAL that is not.
    const walBytes = sizeOf(`${path}-wal`)
    const bytes = sizeOf(path)
    if (bytes === 0 && walBytes > 0) throw storeFailure('damaged', path, `it is empty, and ${path}-wal is not`)
    if (!existsSync(path)) return undefined
    refuseNetwork(path, statfs)
    return realpathSync(path)
  })
}

/** Makes the folder (0700) and an empty file (0600) where missing; an existing file is left alone. @throws StoreFailure */
export function makePlace(path: string, statfs: Statfs = statfsSync): string {
  const found = findPlace(path, statfs)
  if (found !== undefined) return found
  return guard(path, () => {
    refuseNetwork(path, statfs)
    makeFolder(dirname(resolve(path)))
    createPrivate(path)
    return realpathSync(path)
  })
}

/** Folder by folder: `recursive` never comes back from a file system that makes no folders, such as /proc. */
function makeFolder(folder: string): void {
  if (existsSync(folder)) return
  makeFolder(dirname(folder))
  try {
    mkdirSync(folder, 0o700)
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
  }
}

/** Which file is at `path`: while it is open, no other has this name. Undefined for none. @throws StoreFailure */
export function fileAt(path: string): string | undefined {
  const found = guard(path, () => statSync(path, { throwIfNoEntry: false, bigint: true }))
  return found && `${found.dev}:${found.ino}`
}

/** Creates an empty file that only its user may read; does nothing when there is one. */
export function createPrivate(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
  }
}

function refuseNetwork(path: string, statfs: Statfs): void {
  if (process.platform === 'win32' && resolve(path).startsWith('\\\\')) {
    throw storeFailure('network-file-system', path, 'a UNC path')
  }
  if (process.platform !== 'linux') return
  // A negative type is the same 32 bits read as signed.
  const kind = NETWORK.get(statfs(existingFolder(dirname(path))).type >>> 0)
  if (kind !== undefined) throw storeFailure('network-file-system', path, kind)
}

const existingFolder = (folder: string): string =>
  existsSync(folder) || folder === dirname(folder) ? folder : existingFolder(dirname(folder))

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0

const codeOf = (error: unknown): unknown =>
  typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined

function guard<T>(path: string, act: () => T): T {
  try {
    return act()
  } catch (error) {
    if (!(error instanceof Error) || codeOf(error) === 'STORE_FAILURE') throw error
    const code = codeOf(error)
    const readOnly = code === 'EACCES' || code === 'EPERM' || code === 'EROFS'
    const reason = readOnly ? 'read-only' : code === 'ENOSPC' || code === 'EDQUOT' ? 'full' : 'io'
    throw storeFailure(reason, path, error.message, error)
  }
}
