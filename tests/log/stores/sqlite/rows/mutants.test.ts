/** Mistakes made on purpose in the code of rows: each must be noticed by what the tests of rows hold it to. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { holdLossless, holdOdd, holdParts, holdPlace, holdSmall, holdStrict, type RowCode } from './checks.ts'

const LOG = fileURLToPath(new URL('../../../../../src/log', import.meta.url))

/** In `file`, `text` is replaced by `by`; it stands there once. */
type Mutant = readonly [file: string, text: string, by: string]

const ROWS = 'stores/sqlite/rows'

const MUTANTS: readonly Mutant[] = [
  ['stores/deltas.ts', 'if (key !== keys[i++]) return false', 'i++'],
  ['stores/deltas.ts', "if (typeof text !== 'string') return undefined", ''],
  ['stores/deltas.ts', 'one.attempt === other.attempt &&', ''],
  ['stores/deltas.ts', 'one.type === other.type &&', ''],
  [`${ROWS}/packer.ts`, 'delta.time >= this.#said.time', 'true'],
  [`${ROWS}/packer.ts`, 'if (!this.#said.isAt(block)) this.#moveTo(block)', ''],
  [`${ROWS}/packer.ts`, 'if (later > 0) run.moves = true', 'if (later > 1) run.moves = true'],
  [`${ROWS}/packer.ts`, 'times.replace(/A+$/', 'times.replace(/A+/'],
  [`${ROWS}/packer.ts`, 'this.#said.hearPiece(index, run.text)', ''],
  [`${ROWS}/packer.ts`, 'if (!isCount(later)) return false', ''],
  [`${ROWS}/packer.ts`, 'seqs.some((cited, i) => cited !== first + i)', 'false'],
  [`${ROWS}/packer.ts`, 'first + count > seq', 'false'],
  [`${ROWS}/packer.ts`, 'this.#hearPiece(event)\n', '\n'],
  [`${ROWS}/packer.ts`, 'if (isCount(event.time)) this.#said.time = event.time', ''],
  [`${ROWS}/form.ts`, '!hasKeys(event, keys) || ', ''],
  [`${ROWS}/form.ts`, ' || (open[field] !== undefined && open[field] !== value)', ''],
  [`${ROWS}/form.ts`, 'value === open.last && ', ''],
  [`${ROWS}/form.ts`, 'value.length === patterns.length &&', ''],
  [`${ROWS}/form.ts`, 'if (!hasKeys(value, keys)) return false', ''],
  [`${ROWS}/form.ts`, 'if (takes(value)) return value', 'return value'],
  [`${ROWS}/forms.ts`, "const COUNT = new Hole('word', isCount)", "const COUNT = new Hole('word', () => true)"],
  [`${ROWS}/forms.ts`, "value.startsWith('sha256:')", 'true'],
  [`${ROWS}/numerals.ts`, 'rest >= BASE', 'rest > BASE'],
  [`${ROWS}/said.ts`, 'if (text.length < LEAST_LENGTH || this.#numbers.has(text)) return', ''],
  [`${ROWS}/shortened.ts`, '[0-9a-f]{64}$/', '[0-9a-f]{64}$/i'],
  [`${ROWS}/unpacker.ts`, 'this.#hearPiece(event)\n', '\n'],
  [`${ROWS}/unpacker.ts`, 'if (event.seq !== this.#seq) throw', 'if (false) throw'],
  [`${ROWS}/unpacker.ts`, 'if (this.#seq < this.#wanted.to) this.#time = time', 'this.#time = time'],
  [`${ROWS}/unpacker.ts`, 'this.#seq >= this.#wanted.from', 'this.#seq > this.#wanted.from'],
  [`${ROWS}/unpacker.ts`, 'this.#seq >= this.#deltasFrom', 'this.#seq > this.#deltasFrom'],
  [`${ROWS}/unpacker.ts`, 'isCount(event.time) ? event.time : this.#said.time', 'event.time'],
  [`${ROWS}/unpacker.ts`, '(back > this.#seq || many > back)', '(back > this.#seq)'],
  [`${ROWS}/unpacker.ts`, 'if (known.endsBlock) this.#said.endBlock', 'if (false) this.#said.endBlock'],
  [`${ROWS}/row.ts`, 'crc32(text, crc32(', 'crc32(text, 0 * crc32('],
]

/** The code of rows with a mistake in it. */
async function mutated([file, text, by]: Mutant): Promise<RowCode> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-mutant-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  cpSync(LOG, folder, { recursive: true })
  const source = readFileSync(join(folder, file), 'utf8')
  expect(source.split(text), `${file} holds it once: ${text}`).toHaveLength(2)
  writeFileSync(
    join(folder, file),
    source.replace(text, () => by),
  )
  return codeIn(folder)
}

async function codeIn(folder: string): Promise<RowCode> {
  const [batch, row] = await Promise.all(
    ['batch', 'rows/row'].map((name) => import(`${folder}/stores/sqlite/${name}.ts`)),
  )
  return { ...batch, ...row }
}

/** Throws for code that is wrong. */
function hold(code: RowCode): void {
  holdSmall(code)
  holdStrict(code)
  holdPlace(code)
  holdParts(code, { numRuns: 150, endOnFailure: true })
  holdLossless(code, { numRuns: 150, endOnFailure: true })
  holdOdd(code)
}

test('without a mistake nothing is noticed', async () => hold(await codeIn(LOG)))

test.each(MUTANTS)('%s: %j in place of what stands there is noticed', async (...mutant) => {
  const code = await mutated(mutant)
  expect(() => hold(code)).toThrow()
})
