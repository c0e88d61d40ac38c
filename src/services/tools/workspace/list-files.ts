/** `list_files`: the paths of a folder's files, sorted, so many at most. */
import type { Tool } from '../contract.ts'
import { tool } from '../tool.ts'
import { globMatcher } from './glob.ts'
import { filesUnder, SKIPPED_FOLDERS } from './walk.ts'

export const MAX_LISTED = 1000

type ListArgs = { path?: string; glob?: string }

export function listFiles(root: string): Tool {
  return tool({
    name: 'list_files',
    description:
      `Lists the files under a folder of the workspace, one path a line, sorted, at most ${MAX_LISTED}. Links are not ` +
      `followed; ${SKIPPED_FOLDERS.join(', ')} are skipped unless \`path\` names them.`,
    parameters: {
      type: 'object',
      properties: {
        path: { type: 'string', description: 'The folder, relative to the root of the workspace. Default: the root.' },
        glob: {
          type: 'string',
          description:
            'Only files that match, relative to `path`: * and ? within a name, ** over folders, {a,b}. ' +
            'Without a slash it is matched with the name at any depth.',
        },
      },
      additionalProperties: false,
    },
    mode: 'parallel',
    onCrash: 'rerun',
    execute: (args, { signal }) => list(root, args as ListArgs, signal),
  })
}

async function list(root: string, { path = '.', glob }: ListArgs, signal: AbortSignal): Promise<string> {
  const isWanted = glob === undefined ? () => true : globMatcher(glob)
  const paths: string[] = []
  for await (const { shown, below } of filesUnder(root, path, signal)) {
    if (!isWanted(below)) continue
    if (paths.length === MAX_LISTED) {
      return [...paths, `[${MAX_LISTED} files shown, there are more: pass a path or a glob]`].join('\n')
    }
    paths.push(shown)
  }
  return paths.length === 0 ? '[no files]' : paths.join('\n')
}
