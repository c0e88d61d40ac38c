/** Reads a log from a file of JSON lines, as `pawl run --json` and `pawl log --json` write it. */
import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import type { SessionEvent } from '../log/events.ts'
import { validateStored } from '../log/validate.ts'
import { usage } from './console.ts'

/**
 * The file's events, each checked as it is read.
 * @throws an error that names file and line for what is no JSON; InvalidLog and LogTooNew for what is no event
 */
export async function* logFile(path: string): AsyncGenerator<SessionEvent> {
  const whole = await endsWithNewline(path)
  let number = 0
  let last: { line: string; number: number } | undefined
  const state = { seq: 0, time: 0 }
  for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY })) {
    if (last) yield eventOf(last, { path, state, cut: false })
    number += 1
    last = line.trim() === '' ? undefined : { line, number }
  }
  if (last) yield eventOf(last, { path, state, cut: !whole })
  if (state.seq === 0) throw usage(`${path} holds no events`)
}

interface Reading {
  readonly path: string
  /** The next seq, and the time of the event before it. */
  readonly state: { seq: number; time: number }
  /** The line has no end, so it may be half of one. */
  readonly cut: boolean
}

function eventOf({ line, number }: { line: string; number: number }, { path, state, cut }: Reading): SessionEvent {
  const event = validateStored(parsed(line, `${path} line ${number}`, cut), state.seq, state.time)
  state.seq += 1
  state.time = event.time
  return event
}

function parsed(line: string, place: string, cut: boolean): unknown {
  try {
    return JSON.parse(line)
  } catch {
    // Only JSON.parse can land here.
    throw usage(cut ? `${place} is cut off: the file ends in the middle of an event` : `${place} is not JSON`)
  }
}

async function endsWithNewline(path: string): Promise<boolean> {
  const file = await open(path).catch((error: unknown) => {
    throw usage(`cannot read ${path}: ${error instanceof Error ? error.message : String(error)}`)
  })
  try {
    const { size } = await file.stat()
    const { buffer, bytesRead } = await file.read(Buffer.alloc(1), 0, 1, Math.max(0, size - 1))
    return bytesRead === 0 || buffer[0] === 0x0a
  } catch (error) {
    throw usage(`cannot read ${path}: ${error instanceof Error ? error.message : String(error)}`)
  } finally {
    await file.close()
  }
}
