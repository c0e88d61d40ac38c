import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { openaiCompatible } from '../../../src/services/adapters/openai-compatible.ts'
import { assemble, MAX_CALLS } from '../../../src/services/llm/assembler.ts'
import { ask } from '../../kit/ask-adapter.ts'
import { readEvents } from '../../kit/read-events.ts'
import { answer, type Said, wireServer } from '../../kit/wire-server.ts'

const ids = { newCallId: () => 'minted', isUsed: () => false }

async function assembled(said: Said) {
  await using server = await wireServer([{ body: answer(said), split: 'packet' }])
  return assemble(await ask(openaiCompatible({ baseURL: server.url, model: 'm' })), ids)
}

test('an answer of every kind of block arrives whole', async () => {
  const call = { id: 'c', name: 'find', arguments: '{"q":"北京"}' }
  const got = await assembled({
    reasoning: 'let me see',
    text: 'Looking…',
    calls: [call, { ...call, id: 'd' }],
    usage: { prompt_tokens: 9, completion_tokens: 4 },
  })
  expect(got).toEqual({
    kind: 'answered',
    content: [
      { type: 'reasoning', text: 'let me see' },
      { type: 'text', text: 'Looking…' },
      { type: 'tool-call', ...call },
      { type: 'tool-call', ...call, id: 'd' },
    ],
    calls: [
      { type: 'tool-call', ...call },
      { type: 'tool-call', ...call, id: 'd' },
    ],
    finish: { kind: 'tool-calls' },
    usage: { inputTokens: 9, outputTokens: 4 },
  })
})

test('more calls than may be is a malformed answer', async () => {
  const calls = Array.from({ length: MAX_CALLS + 1 }, (_, i) => ({ id: `c${i}`, name: 'f', arguments: '{}' }))
  expect(await assembled({ calls })).toMatchObject({ kind: 'failed', failure: { code: 'MALFORMED_RESPONSE' } })
})

test('whatever the text, the line ends and the cuts, the same events are read', async () => {
  const texts = fc.array(fc.string({ unit: 'binary', maxLength: 20 }), { maxLength: 5 })
  const eols = fc.constantFrom('\n', '\r\n', '\r')
  const cuts = fc.array(fc.nat(), { maxLength: 8 })
  await fc.assert(
    fc.asyncProperty(texts, eols, cuts, async (said, eol, at) => {
      const data = said.map((text) => JSON.stringify({ text }))
      const bytes = new TextEncoder().encode(data.map((one) => `: ping${eol}data: ${one}${eol}${eol}`).join(''))
      const edges = [0, ...at.map((n) => n % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
      const packets = edges.slice(1).map((end, i) => bytes.subarray(edges[i], end))
      const read: string[] = []
      for (const event of readEvents(packets, { maxEventLength: 10_000 })) read.push(event.data)
      expect(read).toEqual(data)
    }),
    { numRuns: 300 },
  )
})
