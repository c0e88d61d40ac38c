/** Asks a person whether a call may run. Whatever is not a clear yes is a no. */
import { createInterface } from 'node:readline/promises'
import { argumentBlock, oneLine, type Palette } from './text.ts'

/** What a person must see before allowing it. */
export interface AskedCall {
  readonly callId: string
  readonly name: string
  readonly arguments: string
  readonly purpose: 'run' | 'rerun'
}

/** The question, arguments shown in full. */
export function approvalQuestion(call: AskedCall, palette: Palette): string {
  const why =
    call.purpose === 'rerun' ? ' It was running when the process died and may have taken effect: run it again?' : ''
  const body = argumentBlock(call.arguments)
    .split('\n')
    .map((line) => `    ${line}`)
    .join('\n')
  return `${palette.yellow('?')} ${palette.bold(oneLine(call.name, 60))} wants to run.${why}\n${body}\n  Allow it? (y/N) `
}

/** `y` and `yes`, in any case, are a yes. */
export const isYes = (answer: string): boolean => /^\s*y(es)?\s*$/i.test(answer)

/**
 * Asks on `output`, reads a line of `input`. Undefined when the input ended without one: nobody said no.
 * @throws the signal's reason when it aborts before an answer
 */
export async function askApproval(
  call: AskedCall,
  palette: Palette,
  streams: {
    readonly input: NodeJS.ReadableStream
    readonly output: NodeJS.WritableStream
    readonly signal: AbortSignal
  },
): Promise<boolean | undefined> {
  const { input, output, signal } = streams
  // Not as a terminal: the kernel edits the line, and Ctrl-C stays a signal to the process.
  const lines = createInterface({ input, output, terminal: false })
  try {
    const ended = new Promise<undefined>((resolve) => lines.once('close', () => resolve(undefined)))
    const answer = await Promise.race([lines.question(approvalQuestion(call, palette), { signal }), ended])
    return answer === undefined ? undefined : isYes(answer)
  } finally {
    lines.close()
  }
}
