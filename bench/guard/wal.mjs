/**
 * Commits and frames of a write-ahead log, from the header of its index in shared memory (SQLite's file format, "WAL-index
 * header"): whoever writes them, and however.
 */
import { existsSync, openSync, readSync } from 'node:fs'

/** Offsets of numbers of 32 bits in the processor's own order. */
const CHANGES = 8
const LAST_FRAME = 16
const HEADER = 48

/** @param {string} path of the database */
export function createWalCounter(path) {
  const header = Buffer.alloc(HEADER)
  const numbers = new Uint32Array(header.buffer, header.byteOffset, HEADER / 4)
  /** Never closed: closing any descriptor of a file drops the locks that this process has on it. @type {number | undefined} */
  let descriptor
  let last = { commits: 0, frame: 0 }
  let frames = 0
  let since = { commits: 0, frames: 0 }

  function look() {
    if (descriptor === undefined && !existsSync(`${path}-shm`)) return
    descriptor ??= openSync(`${path}-shm`, 'r')
    readSync(descriptor, header, 0, HEADER, 0)
    const now = { commits: numbers[CHANGES / 4] ?? 0, frame: numbers[LAST_FRAME / 4] ?? 0 }
    // After it was folded back into the file, the log begins again at its first frame.
    if (now.commits !== last.commits) frames += now.frame > last.frame ? now.frame - last.frame : now.frame
    last = now
  }
  return {
    /** After each commit, so that none goes by unseen. */
    look,
    /** Since the last time. */
    take() {
      look()
      const taken = { commits: last.commits - since.commits, frames: frames - since.frames }
      since = { commits: last.commits, frames }
      return taken
    },
  }
}
