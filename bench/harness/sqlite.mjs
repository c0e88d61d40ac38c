/** The SQLite that this Node's Pawl uses, bare: for the floor, and to look into files that nobody has open. */
import { createRequire } from 'node:module'

/**
 * @typedef {object} Sqlite
 * @property {(sql: string) => unknown} exec
 * @property {(sql: string) => { run(...values: unknown[]): unknown, get(...values: unknown[]): unknown }} prepare
 * @property {() => unknown} close
 */

const require = createRequire(import.meta.url)

/** @param {string} path @returns {Sqlite} */
export function openSqlite(path) {
  const builtIn = process.getBuiltinModule('node:sqlite')
  if (builtIn !== undefined) {
    const { DatabaseSync } = /** @type {{ DatabaseSync: new (path: string) => Sqlite }} */ (builtIn)
    return new DatabaseSync(path)
  }
  const Database = require('libsql')
  return new Database(path)
}
