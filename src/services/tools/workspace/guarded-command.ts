/**
 * A shell command in a process group of its own that dies with its owner, even when the owner is killed: a watchdog
 * holds a pipe from the owner, and when that breaks it kills the group. The command waits at a gate until the
 * watchdog stands.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { errnoOf, WorkspaceError } from './errors.ts'
import { keepEnds } from './kept-ends.ts'

/** How a command ended: by itself with a code, or by a signal. `stopped` says that we ended it, and why. */
export interface CommandOutcome {
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | null
  readonly stopped: 'timeout' | 'abort' | undefined
  /** stdout and stderr in the order they were written. */
  readonly output: string
}

export interface CommandOptions {
  readonly cwd: string
  /** All of the command's environment. */
  readonly env: Readonly<Record<string, string>>
  readonly timeoutMs: number
  /** ms between SIGTERM and SIGKILL. */
  readonly graceMs: number
  /** Bytes of output kept, half from the start and half from the end. */
  readonly maxOutputBytes: number
  readonly signal: AbortSignal
}

/** Descriptor 3 is the gate; no line on it means that the owner died first. The command gets nothing of it. */
const GATED = 'exec 2>&1 && read -r go <&3 && exec 3<&- && exec /bin/sh -c -- "$1"'
/** In a session of its own, so that what is sent to the owner's group or to the command's does not reach it. */
const WATCHDOG = 'read -r _; kill -s KILL -- "-$1"'

/** ms between looks at whether the group is gone. */
const POLL_MS = 10
/** ms for the last output; a process that left the group may hold the pipe for ever. */
const DRAIN_MS = 250

/**
 * Runs `command` to its end, and ends its whole group with it: what it left in the background is stopped too.
 * @throws WorkspaceError COMMAND_NOT_STARTED
 */
export async function runGuarded(command: string, options: CommandOptions): Promise<CommandOutcome> {
  const child = start(['-c', GATED, 'sh', command], { ...options, stdio: ['ignore', 'pipe', 'ignore', 'pipe'] })
  let watchdog: ChildProcess | undefined
  try {
    const group = await pidOf(child)
    const stdio: StartOptions['stdio'] = ['pipe', 'ignore', 'ignore']
    watchdog = start(['-c', WATCHDOG, 'sh', String(group)], { cwd: '/', env: {}, stdio })
    await pidOf(watchdog)
    return await follow(child, group, options)
  } finally {
    // Closes the gate of a command that never passed it.
    child.stdio[3]?.destroy()
    child.stdout?.destroy()
    watchdog?.kill('SIGKILL')
  }
}

type StartOptions = Pick<CommandOptions, 'cwd' | 'env'> & { readonly stdio: ('ignore' | 'pipe')[] }

function start(args: readonly string[], { cwd, env, stdio }: StartOptions): ChildProcess {
  try {
    const child = spawn('/bin/sh', args, { cwd, env, stdio, detached: true })
    // What is written to a process that is already gone is of no use to anybody.
    for (const stream of [child.stdin, child.stdio[3]]) stream?.on('error', () => undefined)
    return child
  } catch (error) {
    throw notStarted(error)
  }
}

/** A process that could not be started has no pid, and says why in an event. */
async function pidOf(child: ChildProcess): Promise<number> {
  const failed = new Promise<never>((_, reject) => child.once('error', (error) => reject(notStarted(error))))
  failed.catch(() => undefined)
  return child.pid ?? failed
}

function notStarted(error: unknown): WorkspaceError {
  const why = errnoOf(error) ?? (error instanceof Error ? error.message : 'unknown')
  return new WorkspaceError('COMMAND_NOT_STARTED', `The command could not be started (${why})`, { cause: error })
}

async function follow(child: ChildProcess, group: number, options: CommandOptions): Promise<CommandOutcome> {
  const output = keepEnds(options.maxOutputBytes)
  child.stdout?.on('data', output.push)
  const drained = new Promise<void>((resolve) => child.stdout?.once('close', resolve))
  const exited = new Promise<Pick<CommandOutcome, 'exitCode' | 'signal'>>((resolve) => {
    child.once('exit', (exitCode, signal) => resolve({ exitCode, signal }))
  })
  const stop = stopper(group, options)
  openGate(child)
  try {
    const ending = await exited
    await endGroup(group, options.graceMs)
    await Promise.race([drained, delay(DRAIN_MS, undefined, { ref: false })])
    return { ...ending, stopped: stop.reason(), output: output.text() }
  } finally {
    stop.dispose()
  }
}

function openGate(child: ChildProcess): void {
  const gate = child.stdio[3]
  if (gate !== null && gate !== undefined && 'write' in gate) gate.write('go\n')
}

/** Ends the group when the time is up or the call is aborted: asked first, then killed. */
function stopper(group: number, { timeoutMs, graceMs, signal }: CommandOptions) {
  let reason: CommandOutcome['stopped']
  let kill: NodeJS.Timeout | undefined
  const stop = (why: 'timeout' | 'abort'): void => {
    if (reason !== undefined) return
    reason = why
    signalGroup(group, 'SIGTERM')
    kill = setTimeout(() => signalGroup(group, 'SIGKILL'), graceMs)
  }
  const abort = (): void => stop('abort')
  const timeout = setTimeout(() => stop('timeout'), timeoutMs)
  signal.addEventListener('abort', abort)
  if (signal.aborted) abort()
  return {
    reason: () => reason,
    dispose() {
      clearTimeout(timeout)
      clearTimeout(kill)
      signal.removeEventListener('abort', abort)
    },
  }
}

/** The shell is gone; what it left behind is asked to end, and killed if it does not. */
async function endGroup(group: number, graceMs: number): Promise<void> {
  const giveUp = performance.now() + graceMs
  for (let lives = signalGroup(group, 'SIGTERM'); lives; lives = signalGroup(group, 0)) {
    if (performance.now() >= giveUp) {
      signalGroup(group, 'SIGKILL')
      return
    }
    await delay(POLL_MS)
  }
}

/** False if nobody is left in the group. */
function signalGroup(group: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-group, signal)
  } catch (error) {
    // Somebody is there whom we may not signal; ESRCH is the other thing kill says.
    return errnoOf(error) === 'EPERM'
  }
}
