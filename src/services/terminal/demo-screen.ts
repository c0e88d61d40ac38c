/** The one screen of `pawl demo`: what the log held at the kill, what carried on, what ran how often. 100 columns, 40 lines. */

import pc from 'picocolors'
import type { KnownEvent, SessionEvent } from '../../log/events.ts'
import { textOf } from '../../log/messages.ts'
import { eventLine } from './event-list.ts'
import { callLine, count, duration, oneLine, type Palette, printable } from './text.ts'

export interface DemoFacts {
  readonly question: string
  readonly folder: string
  readonly model: string
  /** All events in the end. */
  readonly events: readonly SessionEvent[]
  /** How many of them were on disk when the process was killed; absent when it ended before it could be. */
  readonly killed?: { readonly events: number; readonly callId: string; readonly pid: number; readonly ms: number }
  readonly resumed?: { readonly pid: number; readonly ms: number }
  /** The runs that tool bodies began, in order, as they witnessed. */
  readonly begun: readonly { readonly callId: string; readonly run: number }[]
  /** What `verify` says, in a line. */
  readonly verdict: string
  /** What to try next. */
  readonly commands: readonly string[]
  readonly store: string
}

const WIDTH = 100
/** For lines that are cut before they are painted. */
const PLAIN = pc.createColors(false)
const MOST = { events: 3, calls: 8, answer: 7 } as const

/** The screen's lines. */
export function demoScreen(facts: DemoFacts, palette: Palette): readonly string[] {
  const title = 'An agent is killed while a tool works, and another process carries on.'
  return [
    palette.bold(title),
    ...[`question  ${facts.question}`, `folder    ${facts.folder}`, `model     ${facts.model}`].map((line) =>
      oneLineKept(printable(line)),
    ),
    '',
    ...killedPart(facts, palette),
    '',
    ...ranPart(facts, palette),
    '',
    ...answerPart(facts, palette),
    '',
    `${palette.bold('verify')} ${facts.verdict}`,
    oneLine(`The log is in ${facts.store}. Next:`, WIDTH),
    ...facts.commands.map((command) => `  ${palette.cyan(command)}`),
  ]
}

function killedPart({ events, killed, resumed }: DemoFacts, palette: Palette): readonly string[] {
  if (!killed)
    return [palette.yellow('It answered before a tool could be killed at work: ask about what is in the files.')]
  const onDisk = events.slice(0, killed.events)
  const after = events.slice(killed.events)
  const name = nameOf(events, killed.callId)
  return [
    `${palette.red('SIGKILL')} to process ${killed.pid} after ${duration(killed.ms)}, while ${name} was at work. On disk: ${count(onDisk.length, 'event')}`,
    ...some(onDisk.slice(-MOST.events), palette),
    `${palette.green('Opened')} by process ${resumed?.pid}: ${count(after.length, 'more event')} in ${duration(resumed?.ms ?? 0)}`,
    ...some(after.filter(({ type }) => type !== 'assistant/chunk').slice(0, MOST.events), palette),
  ]
}

const some = (events: readonly SessionEvent[], palette: Palette): readonly string[] =>
  events.map((event) => palette.dim(oneLineKept(eventLine(event, 0, PLAIN))))

/** Cut to the width with its alignment kept. */
const oneLineKept = (line: string): string => (line.length > WIDTH ? `${line.slice(0, WIDTH - 1)}…` : line)

function ranPart(facts: DemoFacts, palette: Palette): readonly string[] {
  const calls = facts.events.filter((event): event is KnownEvent<'tool/call'> => event.type === 'tool/call')
  const lines = calls.slice(0, MOST.calls).map((call) => ranLine(call, facts))
  const more = calls.length > MOST.calls ? [`  and ${count(calls.length - MOST.calls, 'more call')}`] : []
  return [
    `${palette.bold('Each tool body told a witness as it began:')} ${onceLine(facts, palette)}`,
    ...lines,
    ...more,
  ]
}

/** Whether the witness saw what is promised: a run begins once, and a call that has its result begins no other. */
function onceLine(facts: DemoFacts, palette: Palette): string {
  const keys = new Set(facts.begun.map(({ callId, run }) => `${run} ${callId}`))
  const again = facts.begun.some(({ callId, run }) => run > 1 && finishedBefore(callId, facts))
  return keys.size === facts.begun.length && !again
    ? 'no run began twice, nothing finished ran again'
    : palette.red('SOMETHING RAN TWICE')
}

function ranLine({ data }: KnownEvent<'tool/call'>, facts: DemoFacts): string {
  const runs = facts.begun.filter(({ callId }) => callId === data.callId).map(({ run }) => run)
  const what = oneLine(callLine(data, 40), 38)
  return oneLineKept(`  ${what.padEnd(38)}  ran ${runs.length}×  ${ranHow(data.callId, runs, facts)}`)
}

/** Whether the call's result was on disk at the kill. */
const finishedBefore = (callId: string, { events, killed }: DemoFacts): boolean =>
  events
    .slice(0, killed?.events ?? 0)
    .some((event) => event.type === 'tool/result' && event.data.message.source.callId === callId)

function ranHow(callId: string, runs: readonly number[], facts: DemoFacts): string {
  const { events, killed } = facts
  if (!killed) return 'once'
  if (finishedBefore(callId, facts)) return 'finished before the kill, not run again'
  if (runs.length < 2) return 'after the kill'
  const again = events.findLast((event) => event.type === 'tool/dispatch' && event.data.callId === callId)
  const onCrash = again?.type === 'tool/dispatch' ? again.data.onCrash : 'unknown'
  return `killed in run 1, again as run ${runs.at(-1)}: onCrash: ${onCrash}`
}

function nameOf(events: readonly SessionEvent[], callId: string): string {
  const call = events.find((event) => event.type === 'tool/call' && event.data.callId === callId)
  return call?.type === 'tool/call' ? oneLine(call.data.name, 30) : callId
}

/** The answer without its first line, which says what the line on the model says. */
function answerPart({ events }: DemoFacts, palette: Palette): readonly string[] {
  const answer = events.findLast((event) => event.type === 'assistant/message')
  const text = answer?.type === 'assistant/message' ? printable(textOf(answer.data.message)) : ''
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  const said = lines[0]?.startsWith('(demo model') ? lines.slice(1) : lines
  const shown = said.slice(0, MOST.answer).map((line) => oneLineKept(`  ${line}`))
  return [
    palette.bold('The answer:'),
    ...shown,
    ...(said.length > MOST.answer ? [`  (${count(said.length - MOST.answer, 'more line')})`] : []),
  ]
}
