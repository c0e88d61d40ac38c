/** `run_command`: a shell command in the workspace. It is not confined to it; that is why it needs an approval. */
import type { Tool } from '../contract.ts'
import { tool } from '../tool.ts'
import { WorkspaceError } from './errors.ts'
import { type CommandOutcome, runGuarded } from './guarded-command.ts'

/** Bytes of output kept of one command. */
export const MAX_OUTPUT_BYTES = 32 * 1024
const DEFAULT_TIMEOUT_MS = 120_000
const MAX_TIMEOUT_MS = 600_000

/** Passed on from the owner's environment. Everything else is not, API keys first. */
const PASSED: readonly string[] = [
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'LANG',
  'LC_ALL',
  'LC_CTYPE',
  'TERM',
  'TMPDIR',
  'TZ',
]

export interface CommandSettings {
  /** Variables added to the few that are passed on. */
  readonly env: Readonly<Record<string, string>>
  /** ms between SIGTERM and SIGKILL. */
  readonly graceMs: number
}

type CommandArgs = { command: string; timeoutMs?: number }

export function runCommand(root: string, settings: CommandSettings): Tool {
  return tool({
    name: 'run_command',
    description:
      'Runs a command with /bin/sh in the root of the workspace, without input. Gives what it wrote to stdout and ' +
      `stderr (of more than ${MAX_OUTPUT_BYTES} bytes the start and the end), then its exit code. When the command ` +
      'ends, so does all it left in the background.',
    parameters: {
      type: 'object',
      properties: {
        command: { type: 'string', minLength: 1 },
        timeoutMs: {
          type: 'integer',
          minimum: 1,
          maximum: MAX_TIMEOUT_MS,
          description: `The command is stopped after this time. Default: ${DEFAULT_TIMEOUT_MS}.`,
        },
      },
      required: ['command'],
      additionalProperties: false,
    },
    needsApproval: true,
    execute: (args, { signal }) => run({ root, settings, signal }, args as CommandArgs),
  })
}

interface Place {
  readonly root: string
  readonly settings: CommandSettings
  readonly signal: AbortSignal
}

async function run(
  { root, settings, signal }: Place,
  { command, timeoutMs = DEFAULT_TIMEOUT_MS }: CommandArgs,
): Promise<string> {
  if (signal.aborted) throw new WorkspaceError('ABORTED', 'The command was not started: the call was aborted')
  const outcome = await runGuarded(command, {
    cwd: root,
    env: { ...passedEnvironment(), ...settings.env },
    graceMs: settings.graceMs,
    maxOutputBytes: MAX_OUTPUT_BYTES,
    timeoutMs,
    signal,
  })
  const text = `${outcome.output.replace(/\n?$/, outcome.output === '' ? '' : '\n')}[${endingOf(outcome, timeoutMs)}]`
  if (outcome.stopped === 'abort') throw new WorkspaceError('ABORTED', text)
  return text
}

function endingOf({ stopped, exitCode, signal }: CommandOutcome, timeoutMs: number): string {
  const end = signal === null ? `exit code ${exitCode}` : `ended by ${signal}`
  if (stopped === 'timeout') return `stopped after ${timeoutMs} ms, ${end}`
  return stopped === 'abort' ? `stopped because the call was aborted, ${end}` : end
}

function passedEnvironment(): Record<string, string> {
  const env: Record<string, string> = {}
  for (const name of PASSED) {
    const value = process.env[name]
    if (value !== undefined) env[name] = value
  }
  return env
}
