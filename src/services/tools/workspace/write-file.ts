/** `write_file`: the whole content of a file, replaced at once. A crash leaves the old file or the new one, never half. */
import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { mkdir, open, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Tool } from '../contract.ts'
import { tool } from '../tool.ts'
import { locate, openFolder, type Place } from './confine.ts'
import { fileError, notAFile } from './errors.ts'

type WriteArgs = { path: string; content: string }

export function writeFile(root: string): Tool {
  return tool({
    name: 'write_file',
    description: 'Writes a text file of the workspace: creates it with its folders, or replaces all of its content.',
    parameters: {
      type: 'object',
      properties: {
        path: { type: 'string', minLength: 1, description: 'Relative to the root of the workspace.' },
        content: { type: 'string', description: 'The whole content.' },
      },
      required: ['path', 'content'],
      additionalProperties: false,
    },
    needsApproval: true,
    execute: (args) => write(root, args as WriteArgs),
  })
}

async function write(root: string, { path, content }: WriteArgs): Promise<string> {
  const place = await locate(root, path)
  const mode = await modeOfFile(place, path)
  try {
    await mkdir(dirname(place.real), { recursive: true })
    const folder = await openFolder(root, dirname(place.real))
    try {
      await replace({ file: join(folder.path, basename(place.real)), content, mode })
    } finally {
      await folder.handle.close()
    }
  } catch (error) {
    throw fileError(error, path)
  }
  return `${mode === undefined ? 'Created' : 'Replaced'} ${place.shown}, ${Buffer.byteLength(content)} bytes`
}

/** By way of a new file beside it, which takes its place whole. */
async function replace(what: { file: string; content: string; mode: number | undefined }): Promise<void> {
  const { file, content, mode } = what
  const temporary = join(dirname(file), `.${randomUUID()}.tmp`)
  const handle = await open(
    temporary,
    constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
    0o666,
  )
  try {
    try {
      if (mode !== undefined) await handle.chmod(mode)
      await handle.writeFile(content)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(temporary, file)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
}

/** The permissions of the file that is replaced; undefined if there is none. */
async function modeOfFile({ real, exists, shown }: Place, path: string): Promise<number | undefined> {
  if (shown === '.' || path.endsWith('/')) throw notAFile(path)
  if (!exists) return undefined
  const stats = await stat(real).catch((error: unknown) => Promise.reject(fileError(error, path)))
  if (!stats.isFile()) throw notAFile(path)
  return stats.mode & 0o777
}
