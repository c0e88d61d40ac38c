/** What can go wrong with files and commands, in words a model can act on: paths as it gave them, and the way out. */
import { PawlError } from '../../../log/errors.ts'

export type WorkspaceCode =
  | 'OUTSIDE_ROOT'
  | 'INVALID_PATH'
  | 'NOT_FOUND'
  | 'NOT_A_FILE'
  | 'NOT_A_FOLDER'
  | 'NO_PERMISSION'
  | 'TOO_LARGE_FILE'
  | 'BINARY_FILE'
  | 'IO_FAILURE'
  | 'INVALID_RANGE'
  | 'INVALID_GLOB'
  | 'INVALID_REGEX'
  | 'SEARCH_TIMEOUT'
  | 'COMMAND_NOT_STARTED'
  | 'ABORTED'

/** A workspace tool could not do what it was asked. */
export class WorkspaceError extends PawlError {
  declare readonly code: WorkspaceCode
  constructor(code: WorkspaceCode, message: string, options?: ErrorOptions) {
    super(message, code, options)
  }
}

export const outsideRoot = (path: string): WorkspaceError =>
  new WorkspaceError('OUTSIDE_ROOT', `"${path}" is outside the workspace: use a path relative to its root`)

export const notFound = (path: string): WorkspaceError =>
  new WorkspaceError('NOT_FOUND', `"${path}" does not exist: look with list_files`)

export const notAFile = (path: string): WorkspaceError =>
  new WorkspaceError('NOT_A_FILE', `"${path}" is not a regular file: look with list_files`)

export const notAFolder = (path: string): WorkspaceError =>
  new WorkspaceError('NOT_A_FOLDER', `"${path}" is not a folder, or a part of it is a file`)

/** Translates what the file system threw about `path`; our own errors pass. */
export function fileError(error: unknown, path: string): WorkspaceError {
  if (error instanceof WorkspaceError) return error
  const code = errnoOf(error)
  switch (code) {
    case 'ENOENT':
      return notFound(path)
    case 'EISDIR':
      return notAFile(path)
    case 'ENOTDIR':
    case 'EEXIST':
      return notAFolder(path)
    // A link took the place of what was a file a moment ago.
    case 'ELOOP':
      return outsideRoot(path)
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return new WorkspaceError('NO_PERMISSION', `"${path}" may not be touched (${code})`, { cause: error })
    case 'ENAMETOOLONG':
      return new WorkspaceError('INVALID_PATH', 'The path is too long', { cause: error })
    default:
      return new WorkspaceError('IO_FAILURE', `"${path}" could not be used (${code ?? 'unknown error'})`, {
        cause: error,
      })
  }
}

/** `ENOENT` and its like. */
export function errnoOf(error: unknown): string | undefined {
  const code: unknown = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : undefined
}
