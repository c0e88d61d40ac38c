/** Columns of a row, decoded: a column of another type than the schema gives it means the file is damaged. */
import { types } from 'node:util'
import { type Row, storeFailure } from './driver.ts'

/** Reads the columns of one row. Each method throws StoreFailure 'damaged' on a value of the wrong type. */
export interface Columns {
  number(name: string): number
  text(name: string): string
  bytes(name: string): Uint8Array
  maybeNumber(name: string): number | undefined
  maybeText(name: string): string | undefined
}

/** The columns of `row`, which came from the database at `path`. */
export function columns(path: string, row: Row): Columns {
  const wrong = (name: string) => storeFailure('damaged', path, `column ${name} holds ${typeof row[name]}`)
  const number = (name: string): number => {
    const value = row[name]
    if (typeof value === 'bigint') return Number(value)
    if (typeof value === 'number') return value
    throw wrong(name)
  }
  const text = (name: string): string => {
    const value = row[name]
    if (typeof value === 'string') return value
    throw wrong(name)
  }
  const absent = (name: string): boolean => row[name] === null || row[name] === undefined
  return {
    number,
    text,
    bytes(name) {
      const value = row[name]
      // Of whichever realm. libsql gives a row of `all` an ArrayBuffer where `get` gives a Buffer.
      if (types.isUint8Array(value)) return value
      if (types.isAnyArrayBuffer(value)) return new Uint8Array(value)
      throw wrong(name)
    },
    maybeNumber: (name) => (absent(name) ? undefined : number(name)),
    maybeText: (name) => (absent(name) ? undefined : text(name)),
  }
}
