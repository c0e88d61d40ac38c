/**
 * Streams nobody wrote: true answers said in every manner that servers have, and answers damaged, cut and mixed with
 * garbage. `PAWL_FUZZ_RUNS=5000 [PAWL_FUZZ_SEED=n] npx vitest run tests/services/adapters/fuzz.test.ts` for more; a
 * failure prints its seed and the smallest stream that fails.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { StreamChunk } from '../../../src/log/messages.ts'
import { openaiCompatible } from '../../../src/services/adapters/openai-compatible.ts'
import { assemble } from '../../../src/services/llm/assembler.ts'
import { tool } from '../../../src/services/tools/tool.ts'
import { ofType, startAgent } from '../../kit/agents.ts'
import { ask } from '../../kit/ask-adapter.ts'
import { brokenPromise } from '../../kit/corpus/contract.ts'
import { withServer } from '../../kit/corpus/fake-fetch.ts'
import {
  answers,
  bytesBeforeFinish,
  bytesOf,
  damagedEvents,
  damagedFragments,
  damages,
  eventsOf,
  type FuzzAnswer,
  type FuzzManner,
  fragmentsOf,
  manners,
} from '../../kit/corpus/fuzz-answers.ts'
import type { Packet } from '../../kit/corpus/packets.ts'
import { unsendable } from '../../kit/corpus/wire-history.ts'
import { manualClock } from '../../kit/manual-clock.ts'

const runs = Number(process.env.PAWL_FUZZ_RUNS ?? 150)
const seed = process.env.PAWL_FUZZ_SEED
const often = (share: number): fc.Parameters<unknown> => ({
  numRuns: Math.max(1, Math.round(runs * share)),
  ...(seed !== undefined && { seed: Number(seed) }),
})
const patient = { timeout: 20_000 + runs * 200 }

const cuts = fc.array(fc.nat(5_000), { maxLength: 6 })
const model = (clock = manualClock()) => openaiCompatible({ baseURL: 'http://fuzz.invalid', model: 'm' }, { clock })

/** The bytes cut at these places, modulo their length; where two meet, an empty packet. */
function cutAt(bytes: Uint8Array, places: readonly number[]): readonly Uint8Array[] {
  const ends = [...places.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  return ends.map((end, i) => bytes.subarray(ends[i - 1] ?? 0, end))
}

const tell = (packets: readonly Packet[]): Promise<StreamChunk[]> =>
  withServer(
    () => ({ packets }),
    manualClock(),
    () => ask(model()),
  )

const assembled = (chunks: readonly StreamChunk[]) =>
  assemble(chunks, { newCallId: () => 'minted', isUsed: () => false })

/** Tells the stream whole and cut; both are the same, and keep what every adapter promises. */
async function told(bytes: Uint8Array, places: readonly number[]): Promise<StreamChunk[]> {
  const chunks = await tell([bytes])
  expect(brokenPromise(chunks)).toBeUndefined()
  expect(await tell(cutAt(bytes, places))).toEqual(chunks)
  return chunks
}

const streamOf = (answer: FuzzAnswer, manner: FuzzManner) => eventsOf(answer, manner, fragmentsOf(answer, manner))

/** What the answer is to its reader. */
function meaningOf({ reasoning, text, calls, finish }: FuzzAnswer, { second }: FuzzManner) {
  if (finish === 'content_filter') return { kind: 'failed', failure: { code: 'CONTENT_FILTER' } }
  const runnable = finish === 'length' ? [] : calls
  const last = second === 'stop' && finish !== 'length' ? 'stop' : finish
  if (last === 'stop' && runnable.length === 0 && text.trim() === '') {
    return { kind: 'failed', failure: { code: 'EMPTY_RESPONSE' } }
  }
  const kind = finish === 'length' ? 'max-tokens' : last === 'tool_calls' && calls.length > 0 ? 'tool-calls' : 'stop'
  const words = [
    { type: 'reasoning', text: reasoning },
    { type: 'text', text },
  ].filter((block) => block.text !== '')
  const asked = runnable.map((call) => ({ type: 'tool-call', ...call }))
  return { kind: 'answered', content: [...words, ...asked], finish: { kind } }
}

describe('a reader', () => {
  test('understands an answer in every manner, however it is cut', patient, async () => {
    await fc.assert(
      fc.asyncProperty(answers, manners, cuts, async (answer, manner, places) => {
        const chunks = await told(bytesOf(streamOf(answer, manner), manner), places)
        expect(assembled(chunks)).toMatchObject(meaningOf(answer, manner))
      }),
      often(1),
    )
  })

  test('never takes a stream that ends before its finish for an answer', patient, async () => {
    await fc.assert(
      fc.asyncProperty(answers, manners, cuts, fc.nat(), async (answer, manner, places, end) => {
        const events = streamOf(answer, manner)
        const bytes = bytesOf(events, manner).subarray(0, end % (bytesBeforeFinish(events, manner) + 1))
        expect(assembled(await told(bytes, places)).kind).toBe('failed')
      }),
      often(1),
    )
  })

  test('keeps its promises for any damage, and says the same however it is cut', patient, async () => {
    await fc.assert(
      fc.asyncProperty(answers, manners, damages, cuts, fc.nat(), async (answer, manner, done, places, end) => {
        const events = damagedEvents(
          eventsOf(answer, manner, damagedFragments(fragmentsOf(answer, manner), done)),
          done,
        )
        const bytes = bytesOf(events, manner)
        await told(end % 2 === 0 ? bytes : bytes.subarray(0, end % (bytes.length + 1)), places)
      }),
      often(1),
    )
  })

  test('keeps them for bytes of any kind', patient, async () => {
    const lines = fc.array(
      fc.oneof(fc.uint8Array({ maxLength: 30 }), fc.constant(Buffer.from('\n\ndata: {"choices":'))),
    )
    await fc.assert(
      fc.asyncProperty(lines, cuts, async (parts, places) => void (await told(Buffer.concat(parts), places))),
      often(1),
    )
  })
})

describe('an agent', () => {
  interface Ran {
    readonly callId: string
    readonly args: string
  }

  /** Two turns: in the first the model says these bytes, afterwards it answers plainly. */
  async function lived(bytes: Uint8Array, places: readonly number[]) {
    const clock = manualClock()
    const ran: Ran[] = []
    const complaints: string[] = []
    const tools = ['f', 'g'].map((name) =>
      tool({
        name,
        description: name,
        parameters: { type: 'object' },
        execute: (args, { callId }) => void ran.push({ callId, args: JSON.stringify(args) }),
      }),
    )
    let asked = 0
    const serve = (body: Readonly<Record<string, unknown>>) => {
      const wrong = unsendable(body)
      if (wrong !== undefined) complaints.push(`request ${asked}: ${wrong}`)
      return { packets: asked++ === 0 ? cutAt(bytes, places) : [Buffer.from(PLAIN)] }
    }
    const log = await withServer(serve, clock, async () => {
      // Disposing verifies the log.
      await using started = await startAgent({ model: model(clock), clock, tools, retry: { maxRetries: 0 } })
      await started.agent.run('go')
      const { reason } = await started.agent.run('and on')
      if (reason.kind !== 'completed') complaints.push(`the next turn ends with ${reason.kind}`)
      return started.log()
    })
    expect(complaints).toEqual([])
    expect(new Set(ran.map(({ callId }) => callId)).size).toBe(ran.length)
    const steps = ofType(log, 'assistant/message').map(({ data }) => `${data.turn}.${data.step}`)
    expect(new Set(steps).size).toBe(steps.length)
    return { ran, log }
  }

  const PLAIN = 'data: {"choices":[{"delta":{"content":"ok"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'

  test(
    'runs exactly the calls of an answer, once each, and none of one that was cut short or filtered',
    patient,
    async () => {
      await fc.assert(
        fc.asyncProperty(answers, manners, cuts, async (answer, manner, places) => {
          const { ran } = await lived(bytesOf(streamOf(answer, manner), manner), places)
          const meant = answer.finish === 'length' || answer.finish === 'content_filter' ? [] : answer.calls
          expect(ran).toEqual(meant.map(({ id, arguments: args }) => ({ callId: id, args })))
        }),
        often(0.3),
      )
    },
  )

  test('runs nothing of a stream that ends before its finish, and goes on', patient, async () => {
    await fc.assert(
      fc.asyncProperty(answers, manners, damages, cuts, fc.nat(), async (answer, manner, done, places, end) => {
        const events = eventsOf(answer, manner, damagedFragments(fragmentsOf(answer, manner), done))
        const bytes = bytesOf(events, manner).subarray(0, end % (bytesBeforeFinish(events, manner) + 1))
        const { ran, log } = await lived(bytes, places)
        expect(ran).toEqual([])
        expect(ofType(log, 'assistant/message')).toHaveLength(1)
      }),
      often(0.3),
    )
  })

  test('goes on after any damage', patient, async () => {
    await fc.assert(
      fc.asyncProperty(answers, manners, damages, cuts, async (answer, manner, done, places) => {
        const events = damagedEvents(
          eventsOf(answer, manner, damagedFragments(fragmentsOf(answer, manner), done)),
          done,
        )
        const { ran } = await lived(bytesOf(events, manner), places)
        if (answer.finish === 'length') expect(ran).toEqual([])
      }),
      often(0.3),
    )
  })
})
