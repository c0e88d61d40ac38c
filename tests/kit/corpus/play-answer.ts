/** A reply is sent to an adapter, whole and cut in every way, and what comes out is always what the file expects. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Json } from '../../../src/log/json.ts'
import type { StreamChunk } from '../../../src/log/messages.ts'
import { WIRE_CHANNEL, type WireNote } from '../../../src/services/adapters/chat-completions/diagnostics.ts'
import type { ModelAdapter } from '../../../src/services/llm/adapter.ts'
import { assemble, assemblerOf, interruptedPrefix } from '../../../src/services/llm/assembler.ts'
import { requestTo } from '../ask-adapter.ts'
import { type ManualClock, manualClock } from '../manual-clock.ts'
import { wireServer } from '../wire-server.ts'
import { brokenPromise } from './contract.ts'
import { withServer } from './fake-fetch.ts'
import type { AnswerFile, CorpusAdapter } from './format.ts'
import { adapterFor, PRESETS } from './make-adapter.ts'
import { difference } from './match.ts'
import { isBytes, isHuge, type Packet, packetsOf, type Split, splitsOf } from './packets.ts'
import { Mismatch, type Played } from './played.ts'
import { stepOf } from './steps.ts'

/** Nowhere: the transport is a fake one. */
const NOWHERE = 'http://corpus.invalid'

/**
 * Sends the reply to one adapter, or to each; two-piece cuts are for the first.
 * @throws Mismatch with the first split whose outcome is not the expected one.
 */
export async function playAnswer(file: AnswerFile, most: number): Promise<Played> {
  const packets = packetsOf(file.reply)
  const http = !packets.some((packet) => 'wait' in packet)
  const presets = isHuge(packets) ? PRESETS.slice(0, 1) : PRESETS
  const specs = file.adapter === undefined ? presets.map((preset) => ({ preset })) : [file.adapter]
  let splits = 0
  for (const [i, spec] of specs.entries()) {
    splits += await playSplits(file, spec, splitsOf(packets, i === 0 ? most : 0))
    if (http) check(file, await tellHttp(file, spec, packets), `${nameOf(spec)}, over HTTP`)
  }
  return { splits, http }
}

async function playSplits(file: AnswerFile, spec: CorpusAdapter, splits: Iterable<Split>): Promise<number> {
  let played = 0
  let first = ''
  for (const { name, packets } of splits) {
    const before = process.cpuUsage()
    const told = await tellFake(file, spec, packets)
    if (played === 0) checkCost(file, process.cpuUsage(before))
    check(file, told, `${nameOf(spec)}, ${name}`)
    const chunks = JSON.stringify(told.chunks)
    if (played++ === 0) first = chunks
    if (chunks !== first)
      throw new Mismatch(`${nameOf(spec)}, ${name}: other chunks\n${chunks}\nthan as written\n${first}`)
  }
  return played
}

function checkCost({ cpuMs }: AnswerFile, { user, system }: NodeJS.CpuUsage): void {
  const ms = Math.round((user + system) / 1_000)
  if (cpuMs !== undefined && ms > cpuMs) throw new Mismatch(`it took ${ms} ms of the processor, not ${cpuMs}`)
}

const nameOf = ({ preset = 'openai-compatible' }: CorpusAdapter): string => preset

interface Told {
  readonly chunks: readonly StreamChunk[]
  readonly notes: readonly string[]
}

/** Any time, the same for all plays. */
const NOW = '2026-10-21T07:00:00Z'

const clockOf = ({ now = NOW }: AnswerFile): ManualClock => manualClock(Date.parse(now))

function tellFake(file: AnswerFile, spec: CorpusAdapter, packets: readonly Packet[]): Promise<Told> {
  const clock = clockOf(file)
  const adapter = adapterFor(spec, { baseURL: NOWHERE, clock })
  return withServer(
    () => ({ ...file.reply, packets }),
    clock,
    () => listen(adapter, file, clock),
  )
}

async function tellHttp(file: AnswerFile, spec: CorpusAdapter, packets: readonly Packet[]): Promise<Told> {
  const { status, headers } = file.reply
  // A huge body leaves in one write: the socket cuts it well enough.
  const body = isHuge(packets) ? [Buffer.concat(packets.filter(isBytes))] : packets
  const reply = { body: body.map(stepOf), ...(status && { status }), ...(headers && { headers }) }
  await using server = await wireServer([reply])
  const clock = clockOf(file)
  const told = await listen(adapterFor(spec, { baseURL: server.url, clock }), file, clock)
  await server.requests[0]?.closed
  return told
}

async function listen(adapter: ModelAdapter, { consumerMs = 0 }: AnswerFile, clock: ManualClock): Promise<Told> {
  const notes: string[] = []
  const hear = (note: unknown) => void notes.push((note as WireNote).kind)
  subscribe(WIRE_CHANNEL, hear)
  const chunks: StreamChunk[] = []
  try {
    for await (const chunk of adapter.stream(requestTo(adapter), { signal: new AbortController().signal })) {
      chunks.push(chunk)
      if (consumerMs > 0) clock.advance(consumerMs)
    }
  } finally {
    unsubscribe(WIRE_CHANNEL, hear)
  }
  return { chunks, notes }
}

function check({ expect }: AnswerFile, told: Told, where: string): void {
  const broken = brokenPromise(told.chunks)
  if (broken !== undefined) throw new Mismatch(`${where}: ${broken}`)
  // What a file does not speak of is not there.
  const found = difference({ failure: null, usage: null, replay: null, ...expect } as Json, outcomeOf(told))
  if (found !== undefined) throw new Mismatch(`${where}: ${found}`)
}

/** What a file's `expect` is held against. */
function outcomeOf({ chunks, notes }: Told) {
  const assembler = assemblerOf(chunks)
  let minted = 0
  const outcome = assemble(assembler, { newCallId: () => `minted-${++minted}`, isUsed: () => false })
  if (outcome.kind === 'answered') {
    const { content: blocks, finish, usage, replayState: replay } = outcome
    return { blocks, finish: finish.kind, usage, replay, chunks, notes }
  }
  const { failure, usage } = outcome
  const shown = { ...failure, retryAfterMs: failure.providerRetryAfterMs }
  return { blocks: interruptedPrefix(assembler), finish: 'error', failure: shown, usage, chunks, notes }
}
