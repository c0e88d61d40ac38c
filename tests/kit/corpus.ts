/** The conformance corpus: its files, read and held to their schema, and the one way to play any of them. */
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { CorpusFile } from './corpus/format.ts'
import { playAnswer } from './corpus/play-answer.ts'
import { playConversation } from './corpus/play-conversation.ts'
import { playRequest } from './corpus/play-request.ts'
import { Mismatch, type Played } from './corpus/played.ts'

const FOLDER = new URL('../corpus/', import.meta.url)

/** One file: its path below the corpus, and what it says. */
export interface CorpusEntry {
  readonly path: string
  readonly file: CorpusFile
}

/** Each row's id, and in a line what goes wrong where it is not held. */
export const corpusRows = (): Readonly<Record<string, string>> => readJson('rows.json') as Record<string, string>

/**
 * All files, by path.
 * @throws Error for one that is not as its schema says.
 */
export function readCorpus(): readonly CorpusEntry[] {
  const read = corpusReader()
  const paths = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' }).map((path) => path.replaceAll('\\', '/'))
  return paths
    .filter((path) => path.includes('/') && path.endsWith('.json'))
    .sort()
    .map((path) => ({ path, file: read(path, readJson(path)) }))
}

/** Holds what a file says to the schema, its expectations too: one of a name that nothing has would always hold. */
export function corpusReader(): (path: string, file: unknown) => CorpusFile {
  const valid = new Ajv2020({ allowUnionTypes: true, discriminator: true }).compile<CorpusFile>(
    readJson('format.schema.json') as object,
  )
  return (path, file) => {
    if (valid(file)) return file
    const [problem] = valid.errors ?? []
    throw new Error(
      `tests/corpus/${path}${problem?.instancePath}: ${problem?.message} ${JSON.stringify(problem?.params)}`,
    )
  }
}

/**
 * Plays a file; a body is cut in two at about `most` places.
 * @throws Mismatch
 */
export async function playEntry({ file }: CorpusEntry, most: number): Promise<Played> {
  switch (file.kind) {
    case 'answer':
      return playAnswer(file, most)
    case 'request':
      return playRequest(file)
    case 'conversation':
      return playConversation(file)
    case 'elsewhere':
      return playElsewhere(file)
  }
}

/** The test it names is there; that it passes is for `npm test`. */
function playElsewhere({ test, name }: Extract<CorpusFile, { kind: 'elsewhere' }>): Played {
  const text = readFileSync(fileURLToPath(new URL(`../../${test}`, import.meta.url)), 'utf8')
  if (!text.includes(name)) throw new Mismatch(`${test} has no test "${name}"`)
  return { splits: 0, http: false }
}

const readJson = (path: string): unknown => JSON.parse(readFileSync(new URL(path, FOLDER), 'utf8'))
