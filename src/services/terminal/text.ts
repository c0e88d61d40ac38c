/**
 * Text for a terminal. What a model, a tool or a file says is shown, never obeyed: control characters are taken out
 * before anything else happens to it.
 */
import pc from 'picocolors'

/** Colours, or their absence; every view takes one. */
export type Palette = ReturnType<typeof pc.createColors>

/** Colours for a stream: on a terminal unless NO_COLOR is set or it is `dumb`. */
export function paletteFor(
  stream: { readonly isTTY?: boolean },
  env: Readonly<Record<string, string | undefined>>,
): Palette {
  return pc.createColors(stream.isTTY === true && !env.NO_COLOR && env.TERM !== 'dumb')
}

/** Without escape sequences, control characters (save newline and tab) and direction overrides. */
export function printable(text: string): string {
  return text.replace(ESCAPES, '').replace(CONTROLS, '')
}

const ESC = String.fromCharCode(0x1b)
const BEL = String.fromCharCode(0x07)
/** CSI, OSC and two-character sequences, whole: without their introducer the rest would stay as litter. */
const ESCAPES = new RegExp(`${ESC}(?:\\[[0-?]*[ -/]*[@-~]|\\][^${BEL}${ESC}]*(?:${BEL}|${ESC}\\\\)?|[@-Z\\\\^_])`, 'g')
const CONTROLS = /[^\P{Cc}\n\t]|\p{Bidi_Control}/gu

/** One printable line of at most `width` characters, a cut marked by `…`. */
export function oneLine(text: string, width: number): string {
  const line = printable(text).replace(/\s+/g, ' ').trim()
  const characters = [...line]
  return characters.length > width ? `${characters.slice(0, width - 1).join('')}…` : line
}

/** A call's raw arguments in a line: `path=README.md`, values of text without their quotes, what is no object as it came. */
export function argumentLine(raw: string, width: number): string {
  const parsed = parse(raw)
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return oneLine(raw, width)
  const pairs = Object.entries(parsed).map(
    ([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  return oneLine(pairs.join(' '), width)
}

/** A call in a line: its tool's name, then its arguments in at most `width` characters. */
export const callLine = (call: { readonly name: string; readonly arguments: string }, width: number): string =>
  `${oneLine(call.name, 60)} ${argumentLine(call.arguments, width)}`.trim()

/**
 * A call's raw arguments in full, indented JSON where they are JSON: for a person who must allow them. Nothing is taken
 * out here, control characters are spelled `\u202e`.
 */
export function argumentBlock(raw: string): string {
  const parsed = parse(raw)
  return (parsed === undefined ? raw : JSON.stringify(parsed, null, 2)).replace(CONTROLS, spelled)
}

const spelled = (control: string): string => `\\u${(control.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`

function parse(raw: string): unknown {
  try {
    return JSON.parse(raw)
  } catch {
    // Only JSON.parse can land here: the model wrote something else, and it is shown as it is.
    return undefined
  }
}

/** A length of time in ms, in words: `12 ms`, `1.4 s`, `3 min 5 s`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  const seconds = Math.round(ms / 1000)
  return seconds < 3600
    ? `${Math.floor(seconds / 60)} min ${seconds % 60} s`
    : `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`
}

/** `1 event`, `2 events`. */
export const count = (n: number, noun: string): string => `${n.toLocaleString('en-US')} ${noun}${n === 1 ? '' : 's'}`

/** Local time of day with ms: `14:03:09.120`. */
export function clockTime(time: number): string {
  const at = new Date(time)
  const two = (n: number) => String(n).padStart(2, '0')
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, '0')}`
}

/** Local date and time to the minute: `2026-03-01 14:03`. */
export function dateTime(time: number): string {
  const at = new Date(time)
  const two = (n: number) => String(n).padStart(2, '0')
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}`
}
