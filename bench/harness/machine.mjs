/** Where and with what was measured. */
import { readFileSync } from 'node:fs'
import { cpus, loadavg, release, totalmem, type } from 'node:os'
import { PEERS } from './peers.mjs'

/**
 * @typedef {object} Machine
 * @property {string} date Of the run, UTC.
 * @property {string} node
 * @property {string} cpu
 * @property {number} cores
 * @property {number} memoryGB
 * @property {string} os
 * @property {Readonly<Record<string, string>>} versions Of what was compared, by package.
 */

/** @returns {Machine} */
export function machineNow() {
  return {
    date: new Date().toISOString().slice(0, 10),
    node: process.version,
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: cpus().length,
    memoryGB: Math.round(totalmem() / 1e9),
    os: `${type()} ${release()}`,
    versions: { pawl: versionIn('..'), ...Object.fromEntries(PEERS.flatMap(versionOf)) },
  }
}

/** Processes that want a core, on average over 1, 5 and 15 minutes. */
export const load = () => loadavg().map((average) => Number(average.toFixed(2)))

/** @param {string} name @returns {[string, string][]} */
function versionOf(name) {
  try {
    return [[name, versionIn(`node_modules/${name}`)]]
  } catch {
    // Not installed: nothing that was run needed it.
    return []
  }
}

/** @param {string} folder from bench/ @returns {string} */
const versionIn = (folder) =>
  JSON.parse(readFileSync(new URL(`../${folder}/package.json`, import.meta.url), 'utf8')).version
