/**
 * The checkpoint of a session against its log: a digest over all rows before its seq says that they are to the byte those
 * it was made of. Digests are chained row by row, so that the next one goes on where the last ended.
 */
import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { Checkpoint } from '../../store.ts'
import type { Reader } from './reader.ts'
import type { StoredRow } from './rows/row.ts'

/** The rows before `seq` of one session, said in a digest. */
export interface Chain {
  readonly seq: number
  readonly digest: string
}

/** Of no rows. A session's header is in it, so that a checkpoint that is moved to another one is none. */
export const chainStart = (header: string): Chain => ({
  seq: 0,
  digest: createHash('sha256').update(`checkpoint 1 ${header}`).digest('base64url'),
})

/** With the next rows; undefined if they are not the next. */
export function chained(chain: Chain, rows: readonly StoredRow[]): Chain | undefined {
  let { seq, digest } = chain
  for (const { first, last, encoding, body } of rows) {
    if (first !== seq || last < first) return undefined
    digest = createHash('sha256').update(`${digest} ${first} ${last} ${encoding} `).update(body).digest('base64url')
    seq = last + 1
  }
  return { seq, digest }
}

export const checksumOf = (body: Uint8Array): number => crc32(body)

/** So long, in ms, the event loop is held up at most while a log is read. */
const SLICE_MS = 5

/** A checkpoint that was found, and whether it is one. */
export type Found = { readonly kind: 'none' } | { readonly kind: 'wrong' } | ({ readonly kind: 'good' } & Checkpoint)

/** The checkpoint of `session`: good, if it is whole and covers the rows that are there. `header` as the table has it. */
export async function readCheckpoint(
  look: <T>(query: (reader: Reader) => T) => Promise<T | undefined>,
  session: number,
  header: string,
): Promise<Found> {
  const found = await look((reader) => reader.checkpoint(session))
  if (found === undefined) return { kind: 'none' }
  const { seq, digest, body, checksum } = found
  if (checksum !== checksumOf(body)) return { kind: 'wrong' }
  let chain: Chain | undefined = chainStart(header)
  let began = performance.now()
  while (chain !== undefined && chain.seq < seq) {
    const from = chain.seq
    const rows: readonly StoredRow[] = (await look((reader) => reader.rows(session, { from, to: seq }))) ?? []
    chain = rows.length === 0 ? undefined : chained(chain, rows)
    if (performance.now() - began < SLICE_MS) continue
    await new Promise((resolve) => setImmediate(resolve))
    began = performance.now()
  }
  return chain?.seq === seq && chain.digest === digest ? { kind: 'good', seq, body } : { kind: 'wrong' }
}
