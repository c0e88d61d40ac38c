/** The built CLI as a child process, with a store and a folder of its own. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import type { SessionEvent } from '../../src/log/events.ts'

/** Each test starts several processes, which takes long on a busy machine. */
export const PATIENCE = { testTimeout: 90_000, hookTimeout: 90_000 } as const

export const CLI = resolve('dist/cli.js')

export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly out: string
  readonly err: string
}

export interface Started {
  readonly child: ChildProcessWithoutNullStreams
  readonly ended: Promise<Ended>
  /** What it wrote to stdout so far. */
  out(): string
}

export interface Place {
  /** The folder the tools see, with a small project in it. */
  readonly root: string
  readonly store: string
  start(...args: readonly string[]): Started
  /** Runs to the end. `--store` is added through the environment. */
  pawl(...args: readonly string[]): Promise<Ended>
  events(session: string): Promise<SessionEvent[]>
  remove(): void
}

/** A fresh store beside a fresh folder. `env` is added to an environment without keys. */
export function place(env: Readonly<Record<string, string>> = {}): Place {
  const base = mkdtempSync(join(tmpdir(), 'pawl-cli-'))
  const root = join(base, 'project')
  mkdirSync(root)
  writeFileSync(join(root, 'README.md'), '# Ratchet\n\nOne-way doors.\n\nRun the tests with `npm test`.\n')
  writeFileSync(join(root, 'package.json'), '{\n  "scripts": {\n    "test": "vitest run"\n  }\n}\n')
  const store = join(base, 'pawl.db')
  const { PATH = '' } = process.env
  const environment = { PATH, HOME: base, XDG_STATE_HOME: base, PAWL_STORE: store, NO_COLOR: '1', ...env }
  const start = (...args: readonly string[]) =>
    watch(spawn(process.execPath, [CLI, ...args], { cwd: root, env: environment }))
  const pawl = (...args: readonly string[]) => start(...args).ended
  return {
    root,
    store,
    start,
    pawl,
    events: async (session) => eventsIn((await pawl('log', session, '--json')).out),
    remove: () => rmSync(base, { recursive: true, force: true }),
  }
}

/** The events in JSON lines, a last line that is cut off left out. */
export const eventsIn = (text: string): SessionEvent[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line): SessionEvent => JSON.parse(line))

function watch(child: ChildProcessWithoutNullStreams): Started {
  let out = ''
  let err = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text
  })
  child.stdin.end()
  const ended = once(child, 'close').then(([code, signal]): Ended => ({ code, signal, out, err }))
  return { child, ended, out: () => out }
}

/** Waits until something is so. @throws after thirty seconds, with what was waited for */
export async function until(what: string, isSo: () => boolean): Promise<void> {
  const deadline = Date.now() + 30_000
  while (!isSo()) {
    if (Date.now() > deadline) throw new Error(`waited in vain until ${what}`)
    await pause(10)
  }
}

/** The lines of a file, none if it is missing. */
export const linesOf = (path: string): string[] =>
  existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : []
