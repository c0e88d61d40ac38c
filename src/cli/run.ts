/** `pawl run` and `pawl resume`: opens a session, drives it, says how it ended. */
import type { PendingApproval } from '../agent.ts'
import { SessionNotFound } from '../log/errors.ts'
import type { LogStore } from '../log/store.ts'
import { LlmError, MessageDropped } from '../services/errors.ts'
import { exitCodeOf } from '../services/terminal/reasons.ts'
import { callLine, printable } from '../services/terminal/text.ts'
import { endingLine } from '../services/terminal/totals.ts'
import { workspaceTools } from '../services/tools/workspace/workspace-tools.ts'
import { type Console, usage } from './console.ts'
import { drive, type Ending } from './drive.ts'
import { openAgent } from './opened.ts'
import {
  chooseModel,
  openExistingStore,
  openStore,
  positiveInteger,
  rootDirectory,
  sessionName,
  shellWord,
  storeFlag,
  storePath,
} from './settings.ts'
import { catchSignals, type Signals } from './signals.ts'

export interface RunFlags {
  readonly store?: string
  readonly session?: string
  readonly model?: string
  readonly baseUrl?: string
  readonly dialect?: string
  readonly root?: string
  readonly yes?: boolean
  readonly maxSteps?: string
}

interface Task {
  readonly flags: RunFlags
  readonly console: Console
  readonly path: string
  readonly sessionId?: string
  readonly prompt?: string
}

/** Runs one prompt in a new or a named session. Resolves with the exit code. */
export async function run(prompt: string, flags: RunFlags, console: Console): Promise<number> {
  if (prompt.trim() === '') throw usage('the prompt is empty')
  const named = flags.session === undefined ? {} : { sessionId: sessionName(flags.session) }
  const task: Task = { flags, console, path: storePath(flags.store), prompt, ...named }
  checkFlags(flags)
  await using store = openStore(task.path)
  return await carryOut(task, store)
}

/** Carries on what the session's log owes, if anything. Never creates one. Resolves with the exit code. */
export async function resume(session: string, flags: RunFlags, console: Console): Promise<number> {
  const sessionId = sessionName(session)
  const path = storePath(flags.store)
  // With a dialect the model is the session's, which is not known yet.
  checkFlags(flags.dialect === undefined ? flags : { model: 'the last one', ...flags })
  await using store = openExistingStore(path)
  if ((await store.header(sessionId)) === undefined) throw new SessionNotFound(sessionId)
  const model = flags.model ?? (await lastModel(store, sessionId, flags.baseUrl ?? flags.dialect))
  return await carryOut({ flags: { ...flags, ...(model && { model }) }, console, path, sessionId }, store)
}

/** Wrong flags are found before a store is touched. */
function checkFlags(flags: RunFlags): void {
  chooseModel(flags)
  rootDirectory(flags.root)
  positiveInteger('--max-steps', flags.maxSteps)
}

/** The model the session asked last, where this command line can reach it. */
async function lastModel(store: LogStore, sessionId: string, server?: string): Promise<string | undefined> {
  let last: { provider: string; model: string } | undefined
  for await (const event of store.read(sessionId, { types: ['request/context'] })) {
    if (event.type === 'request/context') last = event.data
  }
  if (last?.provider === 'pawl') return server === undefined ? 'demo' : undefined
  return last?.provider === 'deepseek' || server !== undefined ? last?.model : undefined
}

/** An agent may carry a turn on before anything is driven, so signals are caught before it is opened. */
async function carryOut(task: Task, store: LogStore): Promise<number> {
  const signals = catchSignals()
  try {
    return await openAndDrive(task, store, signals)
  } finally {
    signals.dispose()
  }
}

async function openAndDrive(task: Task, store: LogStore, signals: Signals): Promise<number> {
  const { flags, console, prompt, sessionId } = task
  const startedAt = Date.now()
  const { adapter, defaulted } = chooseModel(flags)
  const maxSteps = positiveInteger('--max-steps', flags.maxSteps)
  const { agent, from, earlier } = await openAgent({
    store,
    model: adapter,
    tools: workspaceTools({ root: rootDirectory(flags.root) }),
    ...(sessionId === undefined ? {} : { sessionId }),
    ...(maxSteps === undefined ? {} : { maxSteps }),
  })
  if (defaulted) console.note('model: demo, a small rule-based reader (set DEEPSEEK_API_KEY, or name one with --model)')
  const approvals = flags.yes ? 'all' : console.interactive ? 'ask' : 'leave'
  const place = { session: agent.id, path: task.path }
  try {
    const ending = await drive(agent, {
      from,
      earlier,
      console,
      approvals,
      signals,
      ...(prompt === undefined ? {} : { prompt }),
    })
    return report(ending, place, { console, ms: Date.now() - startedAt })
  } catch (error) {
    if (!(error instanceof MessageDropped)) throw error
    console.error(error)
    return error.code === 'MESSAGE_CANCELED' ? 130 : 3
  }
}

interface Place {
  readonly session: string
  readonly path: string
}

/** Says on stderr how it ended and what to do next. With --json only what a person must do, and errors. */
function report(ending: Ending, place: Place, { console, ms }: { console: Console; ms: number }): number {
  const again = `${shellWord(place.session)}${storeFlag(place.path)}`
  const say = (line: string): void => (console.json ? undefined : console.note(line))
  switch (ending.kind) {
    case 'ended':
      if (ending.reason.kind === 'error' && console.json) console.error(new LlmError(ending.reason.error))
      say(console.palette.err.dim(endingLine(ending.reason, ending.totals, ms)))
      say(console.palette.err.dim(`session ${place.session} in ${place.path} (pawl log ${again})`))
      return exitCodeOf(ending.reason)
    case 'waiting':
      for (const call of ending.approvals) sayApproval(call, place, console)
      say(`then \`pawl resume ${again}\` carries on`)
      return 5
    case 'suspended':
      say(`suspended: \`pawl resume ${again}\` carries on`)
      return 143
    case 'idle':
      say(`nothing to carry on in session ${place.session}`)
      return 0
  }
}

function sayApproval(call: PendingApproval, place: Place, console: Console): void {
  const words = ['pawl approve', shellWord(place.session), shellWord(printable(call.callId))].join(' ')
  console.note(`waiting for approval of ${callLine(call, 60)}`)
  console.note(`  ${words}${storeFlag(place.path)}`)
}
