import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { argumentsDigest, createRequestDigester, requestDigest } from '../../src/log/digest.ts'
import type { Message } from '../../src/log/messages.ts'
import { createSurface } from '../../src/log/projections/surface.ts'
import type { LlmRequest } from '../../src/log/requests.ts'
import { ev, logOf, message, textTurn, toolTurn } from '../kit/logs.ts'

const sha256 = (text: string) => `sha256:${createHash('sha256').update(text).digest('hex')}`
const ask = (messages: readonly Message[], more: Partial<LlmRequest> = {}): LlmRequest => ({
  provider: 'p',
  model: 'm',
  sessionId: 's',
  messages,
  ...more,
})
const many = Array.from({ length: 8 }, (_, i) => Object.freeze(message(`m${i}`)))

describe('the digest of a request', () => {
  test('is that of its canonical JSON', () => {
    const request = ask([message('m1', 'hi')], { maxTokens: 5, system: 'be brief' })
    const text =
      '{"maxTokens":5,"messages":[{"content":[{"text":"hi","type":"text"}],"id":"m1","role":"user","source":{"kind":"user"}}],"model":"m","provider":"p","system":"be brief"}'
    expect(requestDigest(request)).toBe(sha256(text))
    expect(createRequestDigester().digest(request)).toBe(sha256(text))
  })

  test('has the fields that this version does not know in their place', () => {
    const request = Object.assign(ask([]), { audio: true, maxTokens: 5, voice: 'low' })
    const text = '{"audio":true,"maxTokens":5,"messages":[],"model":"m","provider":"p","voice":"low"}'
    expect(requestDigest(request)).toBe(sha256(text))
    expect(createRequestDigester().digest(request)).toBe(sha256(text))
  })

  test('does not depend on the session, so a fork’s are those of its parent', () => {
    expect(requestDigest(ask(many, { sessionId: 'a' }))).toBe(requestDigest(ask(many, { sessionId: 'b' })))
  })

  test.each<Partial<LlmRequest>>([
    { model: 'other' },
    { maxTokens: 1 },
    { system: '' },
    { tools: [] },
    { temperature: 0 },
    { stop: ['x'] },
    { messages: many.slice(1) },
  ])('changes with %j', (change) => {
    expect(requestDigest(ask(many, change))).not.toBe(requestDigest(ask(many)))
  })
})

describe('a digester', () => {
  const request = fc.record({
    from: fc.constantFrom(0, 0, 0, 1),
    to: fc.integer({ min: 0, max: 8 }),
    more: fc.constantFrom<Partial<LlmRequest>>({}, { maxTokens: 5 }, { system: 'x' }, { reasoningEffort: 'high' }),
  })

  test('gives the same digests, whatever was asked before', () => {
    fc.assert(
      fc.property(fc.array(request, { maxLength: 12 }), (requests) => {
        const digester = createRequestDigester()
        for (const { from, to, more } of requests) {
          const each = ask(many.slice(from, to), more)
          expect(digester.digest(each)).toBe(requestDigest(each))
        }
      }),
    )
  })

  test('gives the same digests for a conversation as it grows, also where results fall before one another', () => {
    const summary = ev('user/message', message('s1'), {
      surfaceOp: { op: 'replace', start: 4, end: 4 },
      sourceEventSeqs: [4],
    })
    const surface = createSurface()
    const digester = createRequestDigester()
    for (const event of logOf(toolTurn(), textTurn('m2', 2), summary, textTurn('m3', 3))) {
      surface.place(event)
      expect(digester.digest(ask(surface.messages()))).toBe(requestDigest(ask(surface.messages())))
    }
  })

  test('gives the same digests for messages of any length', () => {
    const digester = createRequestDigester()
    const long = Array.from({ length: 12 }, (_, i) => message(`m${i}`, 'é'.repeat(i * 10_000)))
    for (const to of [3, 11, 12]) {
      const each = ask(long.slice(0, to))
      expect(digester.digest(each)).toBe(requestDigest(each))
    }
  })

  test('reads only the messages that are new', () => {
    let read = 0
    const counted = (id: string): Message =>
      Object.freeze({
        ...message(id),
        get content() {
          read += 1
          return []
        },
      })
    const messages = ['a', 'b', 'c', 'd'].map(counted)
    const digester = createRequestDigester()
    digester.digest(ask(messages.slice(0, 3)))
    read = 0
    digester.digest(ask(messages))
    digester.digest(ask(messages, { system: 'comes after the messages' }))
    expect(read).toBe(1)
  })
})

describe('the digest of arguments', () => {
  test('is that of their canonical JSON: spaces and the order of keys do not matter', () => {
    expect(argumentsDigest('{"b": 1, "a": [true, null]}')).toBe(sha256('{"a":[true,null],"b":1}'))
  })

  test('of an empty or blank string is that of no arguments', () => {
    expect(argumentsDigest('')).toBe(sha256('{}'))
    expect(argumentsDigest(' ')).toBe(sha256('{}'))
  })

  test('is that of what the tool is given', () => {
    expect(argumentsDigest('{"a":-0,"b":1e30}')).toBe(sha256('{"a":0,"b":1e+30}'))
  })

  test('of what is not JSON is that of its bytes', () => {
    expect(argumentsDigest('{"a":')).toBe(sha256('{"a":'))
    expect(argumentsDigest('é')).toBe(sha256('é'))
  })

  test('tells apart integers that JavaScript would read as one', () => {
    expect(argumentsDigest('{"id":9007199254740993}')).not.toBe(argumentsDigest('{"id":9007199254740992}'))
    expect(argumentsDigest('[1e999]')).not.toBe(argumentsDigest('[2e999]'))
  })
})
