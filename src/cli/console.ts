/**
 * Where a command writes. stdout carries what was asked for, stderr all else; a reader that leaves early (EPIPE) ends
 * the output and nothing more.
 */
import { debuglog } from 'node:util'
import { PawlError } from '../log/errors.ts'
import { oneLine, type Palette, paletteFor } from '../services/terminal/text.ts'

export interface Console {
  /** Machines read stdout: one JSON value a line, and errors as one JSON line on stderr. */
  readonly json: boolean
  readonly palette: { readonly out: Palette; readonly err: Palette }
  /** Somebody can be asked: a person sits at both ends. */
  readonly interactive: boolean
  /** Nobody reads stdout any more. */
  readonly closed: boolean
  /** To stdout, as it is. */
  out(text: string): void
  /** A line of stdout: the JSON of a value. */
  value(value: unknown): void
  /** A line of stderr, as it is: what a model or a tool said must have been made printable. */
  note(line: string): void
  /** One line on stderr; its stack, too, with NODE_DEBUG=pawl. */
  error(error: unknown): void
  /** Resolves when stdout takes more. */
  ready(): Promise<void>
  /** Resolves when all that was written has left, or its reader has. Rejects if stdout could not be written to. */
  flush(): Promise<void>
}

const debug = debuglog('pawl')

/** The console of this process. */
export function openConsole(options: { readonly json: boolean }): Console {
  const { stdout, stderr, stdin } = process
  let closed = false
  let lost: Error | undefined
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    // Either way nothing more can be shown there.
    closed = true
    if (!isLeft(error, stdout.isTTY)) lost ??= error
  })
  stderr.on('error', () => {
    // The same for stderr; there is nowhere left to say it.
  })
  const out = (text: string): void => {
    if (!closed) stdout.write(text)
  }
  return {
    json: options.json,
    palette: { out: paletteFor(stdout, process.env), err: paletteFor(stderr, process.env) },
    interactive: !options.json && stdin.isTTY === true && stderr.isTTY === true,
    get closed() {
      return closed
    },
    out,
    value: (value) => out(`${JSON.stringify(value)}\n`),
    note: (line) => void stderr.write(`${line}\n`),
    error(error) {
      stderr.write(`${errorLine(error, options.json)}\n`)
      debug('%s', error instanceof Error ? error.stack : error)
    },
    ready: () => (closed || !stdout.writableNeedDrain ? Promise.resolve() : drained(stdout)),
    flush: async () => {
      await Promise.all([written(stdout), written(stderr)])
      if (lost !== undefined) throw lost
    },
  }
}

/** A reader that left early, or a terminal that is gone; a full disk is neither, and what it holds is not all. */
const isLeft = ({ code = '' }: NodeJS.ErrnoException, isTerminal: boolean): boolean =>
  code === 'EPIPE' || code === 'ECONNRESET' || (isTerminal && code === 'EIO')

const drained = (stream: NodeJS.WriteStream): Promise<void> =>
  new Promise((resolve) => {
    const done = () => {
      for (const name of ['drain', 'error', 'close']) stream.off(name, done)
      resolve()
    }
    for (const name of ['drain', 'error', 'close']) stream.on(name, done)
  })

const written = (stream: NodeJS.WriteStream): Promise<void> =>
  new Promise((resolve) => {
    stream.write('', () => resolve())
  })

/** An error in one line: for people, or `{"error":{"code","message"}}`. */
export function errorLine(error: unknown, json: boolean): string {
  const { code, message } = describe(error)
  return json
    ? JSON.stringify({ error: { code, message } })
    : `error: ${message}${code === 'USAGE' ? '' : ` (${code})`}`
}

function describe(error: unknown): { code: string; message: string } {
  const message = oneLine(error instanceof Error ? error.message : String(error), 1000)
  return { code: codeOf(error), message: message || 'unknown error' }
}

function codeOf(error: unknown): string {
  if (error instanceof PawlError) return error.code
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : 'UNKNOWN'
}

/** What the caller got wrong, in words; exit code 1. */
export const usage = (message: string): PawlError => new PawlError(message, 'USAGE')

/** The codes of a store that failed under a command; every other thrown error exits 1. */
const STORE_CODES: ReadonlySet<string> = new Set(['STORE_FAILURE', 'FENCED', 'SEQ_CONFLICT'])

/** 2 for a store that failed, also where another error only reports it; else 1. */
export function exitCodeOfError(error: unknown): number {
  if (error instanceof PawlError && STORE_CODES.has(error.code)) return 2
  return error instanceof Error && error.cause !== undefined ? exitCodeOfError(error.cause) : 1
}
