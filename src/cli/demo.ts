/** `pawl demo`: asks about a folder, kills the agent while a tool works, lets another process carry on, shows both. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, relative } from 'node:path'
import { PawlError } from '../log/errors.ts'
import type { SessionEvent } from '../log/events.ts'
import type { LogStore } from '../log/store.ts'
import { verify } from '../machines/verify.ts'
import { DEMO_LABEL } from '../services/adapters/demo.ts'
import { demoScreen } from '../services/terminal/demo-screen.ts'
import { type Console, usage } from './console.ts'
import { DEMO_SESSION, type Held } from './demo-child.ts'
import { verdictLines } from './reading.ts'
import { openStore, rootDirectory, shellWord } from './settings.ts'

const QUESTION = 'What is this project, and how do I run its tests?'

/** ms: for siblings of the held tool to settle, and for a whole child. */
const SETTLE_MS = 4000
const CHILD_MS = 30_000

interface Stage {
  readonly root: string
  readonly path: string
  readonly witness: string
}

/** Plays it and prints one screen. 0, or 1 if the log does not verify. */
export async function runDemo(
  folder: string | undefined,
  flags: { question?: string },
  console: Console,
): Promise<number> {
  const question = flags.question ?? QUESTION
  if (question.trim() === '') throw usage('the question is empty')
  const root = rootDirectory(folder)
  const place = mkdtempSync(join(tmpdir(), 'pawl-demo-'))
  const stage: Stage = { root, path: join(place, 'pawl.db'), witness: join(place, 'bodies.txt') }
  await using store = openStore(stage.path)
  const killed = await runAndKill(stage, question, store)
  const resumed = killed && (await carryOn(stage))
  const events = await eventsOf(store)
  const verdict = verify(events)
  const screen = demoScreen(
    {
      question,
      folder: root,
      model: DEMO_LABEL.replace(/^demo model: /, 'demo: '),
      events,
      ...(killed && { killed }),
      ...(resumed && { resumed }),
      begun: begunRuns(stage.witness),
      verdict: verdictLines(verdict).trimEnd().split('\n')[0] ?? '',
      commands: [
        `${self()} log ${DEMO_SESSION} --store ${shellWord(stage.path)}`,
        `${self()} run ${shellWord(`What does this project depend on?`)}`,
      ],
      store: stage.path,
    },
    console.palette.out,
  )
  console.out(`${screen.join('\n')}\n`)
  return verdict.ok ? 0 : 1
}

/** Undefined when the run ended before a tool was held. */
async function runAndKill(stage: Stage, question: string, store: LogStore) {
  const startedAt = Date.now()
  const child = start(stage, ['--question', question])
  const callId = await Promise.race([heldCall(child), ended(child).then(() => undefined)])
  if (callId === undefined) return undefined
  await siblingsSettled(store, callId)
  const ms = Date.now() - startedAt
  const exit = once(child, 'exit')
  child.kill('SIGKILL')
  await exit
  return { callId, ms, pid: child.pid ?? 0, events: (await eventsOf(store)).length }
}

async function carryOn(stage: Stage): Promise<{ pid: number; ms: number }> {
  const startedAt = Date.now()
  const child = start(stage, [])
  await ended(child)
  return { pid: child.pid ?? 0, ms: Date.now() - startedAt }
}

function start({ root, path, witness }: Stage, more: readonly string[]): ChildProcess {
  const args = ['demo-child', '--store', path, '--root', root, '--witness', witness, ...more]
  return fork(process.argv[1] ?? '', args, { stdio: ['ignore', 'ignore', 'pipe', 'ipc'], timeout: CHILD_MS })
}

const heldCall = (child: ChildProcess): Promise<string> =>
  new Promise((resolve) => {
    child.once('message', (message: Held) => resolve(message.held))
  })

/** Resolves when the child ended well. @throws what it said on stderr, in one line */
async function ended(child: ChildProcess): Promise<void> {
  let said = ''
  child.stderr?.on('data', (data: Buffer) => {
    said += data.toString('utf8')
  })
  const [code, signal] = await once(child, 'exit')
  if (code === 0 || signal === 'SIGKILL') return
  throw new PawlError(`the agent's process failed (${signal ?? `exit code ${code}`}): ${said.trim()}`, 'DEMO_FAILED')
}

/** Waits, bounded, until no call but the held one is under way: what they found is on disk then. */
async function siblingsSettled(store: LogStore, held: string): Promise<void> {
  const signal = AbortSignal.timeout(SETTLE_MS)
  const open = new Set<string>()
  let seen = false
  for await (const event of store.subscribe(DEMO_SESSION, { from: 0, signal })) {
    if (event.type === 'tool/call') open.add(event.data.callId)
    if (event.type === 'tool/result') open.delete(event.data.message.source.callId)
    seen ||= event.type === 'tool/dispatch' && event.data.callId === held
    if (seen && open.size === 1) return
  }
}

async function eventsOf(store: LogStore): Promise<readonly SessionEvent[]> {
  const events: SessionEvent[] = []
  for await (const event of store.read(DEMO_SESSION)) events.push(event)
  return events
}

function begunRuns(witness: string): readonly { callId: string; run: number }[] {
  if (!existsSync(witness)) return []
  const lines = readFileSync(witness, 'utf8').trimEnd().split('\n')
  return lines.map((line) => line.split(' ')).map(([callId = '', run]) => ({ callId, run: Number(run) }))
}

/** How this command was called, to be called again. */
function self(): string {
  const script = process.argv[1] ?? 'pawl'
  if (basename(script) === 'pawl') return 'pawl'
  const near = relative(process.cwd(), script)
  return `node ${shellWord(near.length < script.length ? near : script)}`
}
