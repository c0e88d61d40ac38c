/**
 * A run as it happens: events in, text out. The answer and the tool lines are for stdout, all else for stderr. A view
 * knows only the events it was shown, in order, so what it prints is durable.
 */
import type { KnownEvent, SessionEvent } from '../../log/events.ts'
import { type StreamChunk, type ToolResultMessage, textOf } from '../../log/messages.ts'
import { callLine, duration, oneLine, type Palette, printable } from './text.ts'

/** A piece of text and where it goes. */
export interface Piece {
  readonly to: 'out' | 'err'
  readonly text: string
}

export interface RunView {
  /** Takes note of an earlier event that this run does not show, so that its calls have their names. */
  recall(event: SessionEvent): void
  /** What is to be written for one event, often nothing. */
  show(event: SessionEvent): readonly Piece[]
  /** Ends a line that is still open on stdout. */
  end(): readonly Piece[]
}

export interface RunViewOptions {
  readonly palette: Palette
  /** Columns; 100 by default. */
  readonly width?: number
  /** Shows what the model says while it thinks; off by default. */
  readonly reasoning?: boolean
}

interface SeenCall {
  readonly name: string
  readonly arguments: string
  readonly dispatchedAt?: number
}

/** A view of one run. */
export function runView({ palette: c, width = 100, reasoning = false }: RunViewOptions): RunView {
  const calls = new Map<string, SeenCall>()
  let openLine = false

  const closeLine = (): Piece[] => {
    const pieces: Piece[] = openLine ? [{ to: 'out', text: '\n' }] : []
    openLine = false
    return pieces
  }
  const line = (to: Piece['to'], text: string): Piece[] => [...closeLine(), { to, text: `${text}\n` }]
  const run = (text: string, paint: (s: string) => string = String): Piece[] => {
    if (text === '') return []
    openLine = !text.endsWith('\n')
    return [{ to: 'out', text: paint(text) }]
  }

  function chunk(chunk: StreamChunk): Piece[] {
    switch (chunk.type) {
      case 'text-delta':
        return run(printable(chunk.text))
      case 'reasoning-delta':
        return reasoning ? run(printable(chunk.text), c.dim) : []
      case 'block-end':
        return closeLine()
      default:
        return []
    }
  }

  function dispatched({ data }: KnownEvent<'tool/dispatch'>): Piece[] {
    const call = calls.get(data.callId) ?? { name: data.callId, arguments: '' }
    const again = data.run > 1 ? ` (run ${data.run})` : ''
    return line('out', `${c.cyan('→')} ${callLine(call, width - 30)}${again}`)
  }

  function settled({ data, time }: KnownEvent<'tool/result'>): Piece[] {
    const callId = data.message.source.callId
    const call = calls.get(callId) ?? { name: callId, arguments: '' }
    const took = call.dispatchedAt === undefined ? 'not run' : duration(time - call.dispatchedAt)
    const failed = data.message.content[0].isError === true
    const mark = failed ? c.red('✗') : c.green('✓')
    const head = callLine(call, 30)
    const code = data.error === undefined ? '' : ` ${data.error.code}:`
    const said = failed ? `${code} ${oneLine(resultText(data.message), Math.max(20, width - head.length - 30))}` : ''
    return line('out', `${mark} ${head} ${c.dim(`(${took})`)}${said}`)
  }

  function note(event: SessionEvent): void {
    if (event.type === 'turn/start') calls.clear()
    if (event.type === 'tool/call') calls.set(event.data.callId, event.data)
    if (event.type !== 'tool/dispatch') return
    const call = calls.get(event.data.callId) ?? { name: event.data.callId, arguments: '' }
    calls.set(event.data.callId, { ...call, dispatchedAt: event.time })
  }

  return {
    recall: note,
    end: closeLine,
    show(event) {
      note(event)
      switch (event.type) {
        case 'assistant/chunk':
          return chunk(event.data.chunk)
        case 'assistant/message':
          return closeLine()
        case 'tool/dispatch':
          return dispatched(event)
        case 'tool/result':
          return settled(event)
        case 'llm/retry':
          return line(
            'err',
            c.yellow(
              `asking again in ${duration(event.data.delayMs)}: ${event.data.failure.code}: ${oneLine(event.data.failure.message, width)}`,
            ),
          )
        case 'turn/cancel':
          return line('err', c.yellow(`cancelling turn ${event.data.turn}`))
        case 'session/resumed':
          return line(
            'err',
            c.dim(
              event.data.recovery === 'continue'
                ? 'carrying on where the log ends'
                : 'closing the turn the log left open',
            ),
          )
        case 'agent/hook-failed':
          return line('err', c.yellow(`hook ${event.data.hook} failed: ${oneLine(event.data.error.message, width)}`))
        default:
          return []
      }
    },
  }
}

/** The text of a tool's result. */
export const resultText = (message: ToolResultMessage): string => textOf(message.content[0])
