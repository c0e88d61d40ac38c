/**
 * The command line: which commands there are, their flags, and who does them. What does them is loaded only then, so
 * that a list or a wrong flag does not wait for all of an agent.
 */
import { createRequire } from 'node:module'
import { Command, CommanderError } from 'commander'
import { servers } from '../services/adapters/dialects.ts'
import { type Console, exitCodeOfError, openConsole, usage } from './console.ts'
import type { DemoChildFlags } from './demo-child.ts'
import type { RunFlags } from './run.ts'

type Work = (console: Console) => Promise<number>

/** Carries out a command line (without node and script) and resolves with the exit code. Never rejects. */
export async function main(argv: readonly string[]): Promise<number> {
  const end = argv.indexOf('--')
  const console = openConsole({ json: argv.slice(0, end < 0 ? argv.length : end).includes('--json') })
  process.once('uncaughtException', (defect) => {
    console.error(defect)
    process.exit(1)
  })
  const failed = (error: unknown): number => {
    console.error(error)
    return exitCodeOfError(error)
  }
  const code = await perform(argv, console).catch(failed)
  return console.flush().then(() => code, failed)
}

async function perform(argv: readonly string[], console: Console): Promise<number> {
  let work: Work | undefined
  const program = pawl((chosen) => {
    work = chosen
  })
  try {
    program.parse(argv, { from: 'user' })
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error
    if (error.exitCode === 0) return 0
    if (error.code === 'commander.help') {
      console.note(program.helpInformation().trimEnd())
      return 1
    }
    throw usage(error.message.replace(/^error: /, ''))
  }
  return work === undefined ? 0 : work(console)
}

function pawl(choose: (work: Work) => void): Command {
  const program = new Command('pawl')
    .description('Agents that survive being killed: every run is a log that is carried on where it ends.')
    .version(version())
    .exitOverride()
    // Errors are reported once, by `main`.
    .configureOutput({ writeErr: () => {} })
    .showSuggestionAfterError(false)
  addRunning(program, choose)
  addReading(program, choose)
  addAnswering(program, choose)
  addDemo(program, choose)
  return program
}

const withStore = (command: Command): Command =>
  command.option('--store <file>', 'the store (else PAWL_STORE, else the state directory of the user)')

const withModel = (command: Command): Command =>
  withStore(command)
    .option('--model <model>', '`demo`, or a model of DeepSeek or of the server at --base-url')
    .option('--base-url <url>', 'a server that speaks the chat-completions API')
    .option('--dialect <name>', `how that server speaks it, or whose it is: ${Object.keys(servers).join(', ')}`)
    .option('--root <dir>', 'the folder the tools may use (else the current one)')
    .option('--yes', 'allow every tool call that asks')
    .option('--max-steps <n>', 'most steps of a turn')
    .option('--json', 'print the events this command records, one a line')

function addRunning(program: Command, choose: (work: Work) => void): void {
  withModel(program.command('run').argument('<prompt>').description('run one prompt'))
    .option('--session <session>', 'the session to continue or to create')
    .action((prompt: string, flags: RunFlags) =>
      choose(async (console) => (await import('./run.ts')).run(prompt, flags, console)),
    )
  withModel(program.command('resume').argument('<session>').description('carry on what a session left open')).action(
    (session: string, flags: RunFlags) =>
      choose(async (console) => (await import('./run.ts')).resume(session, flags, console)),
  )
}

function addReading(program: Command, choose: (work: Work) => void): void {
  withStore(program.command('sessions').description('list the sessions of the store'))
    .option('--json', 'a session a line')
    .action((flags: { store?: string }) =>
      choose(async (console) => (await import('./reading.ts')).sessions(flags, console)),
    )
  withStore(program.command('log').argument('<session>').description("show a session's log"))
    .option('--json', 'an event a line')
    .action((session: string, flags: { store?: string }) =>
      choose(async (console) => (await import('./reading.ts')).log(session, flags, console)),
    )
  withStore(
    program.command('cassette').argument('<session>').description('print a session as a recording for tests'),
  ).action((session: string, flags: { store?: string }) =>
    choose(async (console) => (await import('./cassette.ts')).cassette(session, flags, console)),
  )
  withStore(program.command('verify').argument('[session]').description('check a log against every rule'))
    .option('--file <file>', 'events as --json prints them, instead of a session')
    .action((session: string | undefined, flags: { store?: string; file?: string }) =>
      choose(async (console) => (await import('./reading.ts')).check(session, flags, console)),
    )
}

function addAnswering(program: Command, choose: (work: Work) => void): void {
  withStore(
    program.command('approve').argument('<session>').argument('<call>').description('allow a waiting call'),
  ).action((session: string, callId: string, flags: { store?: string }) =>
    choose(async (console) => (await import('./answering.ts')).answer('approve', { session, callId }, flags, console)),
  )
  withStore(program.command('deny').argument('<session>').argument('<call>').description('refuse a waiting call'))
    .option('--reason <text>', 'told to the model')
    .action((session: string, callId: string, flags: { store?: string; reason?: string }) =>
      choose(async (console) => (await import('./answering.ts')).answer('deny', { session, callId }, flags, console)),
    )
  withStore(program.command('cancel').argument('<session>').description('cancel the open turn of a session')).action(
    (session: string, flags: { store?: string }) =>
      choose(async (console) => (await import('./answering.ts')).cancel(session, flags, console)),
  )
}

function addDemo(program: Command, choose: (work: Work) => void): void {
  program
    .command('demo')
    .argument('[folder]', 'the folder to ask about (else the current one)')
    .description('kill an agent while it works and watch it carry on')
    .option('--question <text>', 'what to ask')
    .action((folder: string | undefined, flags: { question?: string }) =>
      choose(async (console) => (await import('./demo.ts')).runDemo(folder, flags, console)),
    )
  program
    .command('demo-child', { hidden: true })
    .requiredOption('--store <file>')
    .requiredOption('--root <dir>')
    .requiredOption('--witness <file>')
    .option('--question <text>')
    .action((flags: DemoChildFlags) => choose(async () => (await import('./demo-child.ts')).demoChild(flags)))
}

function version(): string {
  const manifest: unknown = createRequire(import.meta.url)('../../package.json')
  const found =
    typeof manifest === 'object' && manifest !== null && 'version' in manifest ? manifest.version : undefined
  return String(found)
}
