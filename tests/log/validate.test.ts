import { describe, expect, test } from 'vitest'
import { InvalidEvent, InvalidLog, LogTooNew, NotJson, TooLarge } from '../../src/log/errors.ts'
import { KNOWN, MAX_EVENT_BYTES } from '../../src/log/events.ts'
import { placed, upcast, validateNew, validateStored } from '../../src/log/validate.ts'
import { answer, logOf, message, result, resultMessage, toolTurn } from '../kit/logs.ts'

const userMessage = (more: object = {}) => ({ type: 'user/message', data: message('m1'), surfaceOp: 'append', ...more })
const turnStart = (more: object = {}) => ({
  type: 'turn/start',
  data: { turn: 1, limits: { maxSteps: 1, maxParallelToolCalls: 1 } },
  ...more,
})
const chunk = (value: unknown) => ({ type: 'assistant/chunk', data: { turn: 1, step: 1, attempt: 1, chunk: value } })

describe('a new event', () => {
  test('is copied: what the caller changes afterwards changes nothing', () => {
    const event = userMessage({ sourceEventSeqs: [0] })
    const valid = validateNew(event)
    event.data = message('m2')
    Reflect.set(event, 'surfaceOp', 'other')
    expect(valid).toEqual({
      type: 'user/message',
      data: message('m1'),
      marks: { surfaceOp: 'append', sourceEventSeqs: [0] },
    })
    expect(Object.isFrozen(valid.data)).toBe(true)
    expect(Object.isFrozen(valid.marks.sourceEventSeqs)).toBe(true)
  })

  test.each<[string, unknown, string]>([
    ['nothing at all', undefined, 'must be an object'],
    ['a list', [], 'must be an object'],
    ['null', null, 'must be an object'],
    ['no type', { data: {} }, 'must have a `type`'],
    ['an empty type', { type: '', data: {} }, 'must have a `type`'],
    ['an unknown key', turnStart({ extra: 1 }), 'turn/start: unknown key "extra"'],
    ['a place of its own', turnStart({ seq: 3 }), 'unknown key "seq"'],
    ['ignorable: false', turnStart({ ignorable: false }), '`ignorable` is true or absent'],
    ['a message without its mark', { type: 'user/message', data: message('m1') }, '`surfaceOp` must be'],
    ['a mark where none belongs', turnStart({ surfaceOp: 'append' }), 'only for messages and results'],
    ['sources where none belong', turnStart({ sourceEventSeqs: [0] }), 'only for messages and results'],
    ['another mark', userMessage({ surfaceOp: 'prepend' }), '`surfaceOp` must be'],
    ['no mark at all', userMessage({ surfaceOp: null }), '`surfaceOp` must be'],
    ['another operation', userMessage({ surfaceOp: { op: 'insert', start: 1, end: 2 } }), '`surfaceOp` must be'],
    [
      'a replace with a fourth key',
      userMessage({ surfaceOp: { op: 'replace', start: 1, end: 2, x: 1 } }),
      '`surfaceOp`',
    ],
    ['a replace of half a seq', userMessage({ surfaceOp: { op: 'replace', start: 0.5, end: 2 } }), '`surfaceOp`'],
    ['no sources in a list', userMessage({ sourceEventSeqs: [] }), 'must not be empty'],
    ['a source twice', userMessage({ sourceEventSeqs: [1, 1] }), 'different seqs'],
    ['a negative source', userMessage({ sourceEventSeqs: [-1] }), 'integers from 0'],
    ['a fractional source', userMessage({ sourceEventSeqs: [0.5] }), 'integers from 0'],
    ['sources that are no list', userMessage({ sourceEventSeqs: 1 }), 'must be an array'],
    ['an unknown type', { type: 'turn/pause', data: {} }, 'turn/pause: unknown type'],
    ['a plug-in’s event without an owner', { type: 'note', data: {}, ignorable: true }, 'named "owner/name"'],
    ['a plug-in’s event of an empty owner', { type: '/note', data: {}, ignorable: true }, 'named "owner/name"'],
    ['a plug-in’s event of an empty name', { type: 'acme/', data: {}, ignorable: true }, 'named "owner/name"'],
    ['no turn', { type: 'turn/start', data: {} }, 'turn/start: data.turn must be an integer from 1'],
    ['turn zero', { type: 'step/start', data: { turn: 0, step: 1 } }, 'data.turn must be'],
    ['data that is no object', { type: 'turn/end', data: [] }, 'turn/end: data must be an object'],
    [
      'an unknown reason',
      { type: 'turn/end', data: { turn: 1, reason: { kind: 'bored' } } },
      'data.reason.kind must be one of',
    ],
    ['an unknown chunk', chunk({ type: 'sound' }), 'data.chunk.type must be one of block-start'],
    ['a delta without text', chunk({ type: 'text-delta', index: 0 }), 'data.chunk.text must be a string'],
    [
      'a failure without a code',
      chunk({ type: 'finish', reason: { kind: 'error', failure: { message: 'm' } } }),
      'failure.code',
    ],
  ])('with %s is refused', (_, event, why) => {
    expect(() => validateNew(event)).toThrow(InvalidEvent)
    expect(() => validateNew(event)).toThrow(why)
  })

  test.each<[string, object, string]>([
    ['an id', { ...message('m1'), id: '' }, 'data.id'],
    ['a role of its own', { ...message('m1'), role: 'assistant' }, 'data.role must be one of user'],
    ['content', { ...message('m1'), content: 'text' }, 'data.content must be an array'],
    ['blocks that have a type', { ...message('m1'), content: [{ text: 'x' }] }, 'data.content[0].type'],
    ['text in its text blocks', { ...message('m1'), content: [{ type: 'text' }] }, 'data.content[0].text'],
    ['a source of its own', { ...message('m1'), source: { kind: 'model' } }, 'data.source'],
  ])('a user’s message must have %s', (_, data, why) => {
    expect(() => validateNew(userMessage({ data }))).toThrow(why)
  })

  test('blocks and sources of kinds to come pass', () => {
    const data = { ...message('m1'), content: [{ type: 'acme/chart', points: [1] }], source: { kind: 'cron' } }
    expect(validateNew(userMessage({ data })).data).toEqual(data)
  })

  test('a chunk may be what a careless provider sends: a call without an id, a failure without words', () => {
    const block = { type: 'tool-call', id: '', name: '', arguments: '' }
    expect(() => validateNew(chunk({ type: 'block-end', index: 0, block }))).not.toThrow()
    const failure = { message: '', code: 'SERVER' }
    expect(() => validateNew(chunk({ type: 'finish', reason: { kind: 'error', failure } }))).not.toThrow()
  })

  test('an answer must name its model, and may cite nothing', () => {
    const draft = { ...answer('hi'), surfaceOp: 'append', sourceEventSeqs: [] }
    expect(validateNew(draft).marks).toEqual({ surfaceOp: 'append', sourceEventSeqs: [] })
    const data = {
      ...(draft.data as object),
      message: { ...message('a1'), role: 'assistant', source: { kind: 'model' } },
    }
    expect(() => validateNew({ ...draft, data })).toThrow('assistant/message: data.message.source.provider')
  })

  test('a result is one tool-result block of the call it names', () => {
    const draft = (wrong: object) => ({
      ...result('c1'),
      surfaceOp: 'append',
      data: { turn: 1, step: 1, message: { ...resultMessage('c1'), ...wrong } },
    })
    expect(() => validateNew(draft({ content: [] }))).toThrow('exactly one tool-result block')
    expect(() => validateNew(draft({ source: { kind: 'tool', callId: 'c2' } }))).toThrow('must equal source.callId')
    expect(() => validateNew(draft({ source: { kind: 'user' } }))).toThrow('data.message.source.kind')
    expect(validateNew(draft({})).type).toBe('tool/result')
  })

  test('that is not JSON is refused with its place', () => {
    expect(() => validateNew(userMessage({ data: { ...message('m1'), at: new Date() } }))).toThrow(NotJson)
    expect(() => validateNew({ type: 'acme/note', data: { a: [1n] }, ignorable: true })).toThrow('acme/note: data.a[0]')
  })

  test('takes fields this version does not know', () => {
    expect(validateNew(turnStart({ data: { ...turnStart().data, mood: 'good' } })).data).toHaveProperty('mood')
  })

  test('of a plug-in keeps its data and its mark', () => {
    const note = { type: 'acme/note', data: { any: [1, null] }, ignorable: true }
    expect(placed(validateNew(note), 0, 5)).toEqual({ ...note, seq: 0, time: 5 })
    expect(validateNew({ type: 'a/b', data: null, ignorable: true }).type).toBe('a/b')
  })

  test('that an older reader may pass over says so, also where it is a message', () => {
    expect(validateNew(userMessage({ ignorable: true })).marks).toEqual({ surfaceOp: 'append', ignorable: true })
    expect(validateNew(userMessage()).marks).toEqual({ surfaceOp: 'append' })
  })

  test('of a failed hook is one the log knows', () => {
    const data = { hook: 'step/prepare', turn: 1, error: { message: 'no', code: 'HOOK' } }
    expect(validateNew({ type: 'agent/hook-failed', data })).toMatchObject({ data, marks: {} })
  })
})

describe('size', () => {
  const note = (text: string) => ({ type: 'acme/note', data: { text }, ignorable: true })

  test('one MiB is the most an event takes, in bytes of UTF-8 JSON', () => {
    const most = (unit: string, bytes: number) => unit.repeat(Math.floor((MAX_EVENT_BYTES - 200) / bytes))
    for (const [unit, bytes] of [
      ['a', 1],
      ['é', 2],
      ['😀', 4],
      ['\n', 2],
      ['\u0001', 6],
    ] as const) {
      expect(() => validateNew(note(most(unit, bytes)))).not.toThrow()
      expect(() => validateNew(note(most(unit, bytes) + 'x'.repeat(300)))).toThrow(TooLarge)
    }
  })

  test('the place an event gets later is counted before', () => {
    const last = Number.MAX_SAFE_INTEGER
    const inPlace = (length: number) => placed(validateNew(note('a'.repeat(length))), last, last)
    const room = MAX_EVENT_BYTES - JSON.stringify(inPlace(0)).length
    expect(() => inPlace(room + 1)).toThrow(TooLarge)
    expect(JSON.stringify(inPlace(room - 16)).length).toBe(MAX_EVENT_BYTES - 16)
  })

  test('is told to the byte, and what is exactly as large as allowed is taken', () => {
    // 56 for its place, 56 for all but the text.
    const most = MAX_EVENT_BYTES - 112
    expect(() => validateNew(note('a'.repeat(most)))).not.toThrow()
    expect(() => validateNew(note('a'.repeat(most + 1)))).toThrow(
      expect.objectContaining({
        message: expect.stringContaining(`acme/note event is ${MAX_EVENT_BYTES + 1} bytes`),
        bytes: MAX_EVENT_BYTES + 1,
        max: MAX_EVENT_BYTES,
      }),
    )
  })

  test('a name of characters that JSON escapes counts as it is written', () => {
    // Six bytes each: 3000 in the name, the rest in the data; 56 for the place, 40 for all else.
    const named = (length: number) => ({
      type: `a/${'\u0001'.repeat(3_000)}`,
      data: '\u0001'.repeat(length),
      ignorable: true,
    })
    const most = Math.floor((MAX_EVENT_BYTES - 96 - 18_000) / 6)
    expect(() => validateNew(named(most))).not.toThrow()
    expect(() => validateNew(named(most + 1))).toThrow(TooLarge)
  })

  test.each<[string, unknown, number]>([
    ['text', 'a', 1],
    ['a list of texts', ['a'.repeat(97)], 100],
    ['a list of numbers', [-1.2345678901234567e-100], 25],
    ['a list of nothing', [null], 5],
    ['a list of lists', [[]], 3],
  ])('data may be %s: it counts like any other', (_, value, bytes) => {
    const times = (count: number) => ({
      type: 'acme/note',
      data: Array.isArray(value) ? Array.from({ length: count }, () => value[0]) : String(value).repeat(count),
      ignorable: true,
    })
    const most = Math.floor(MAX_EVENT_BYTES / bytes)
    expect(() => validateNew(times(most - 200))).not.toThrow()
    expect(() => validateNew(times(most + 1))).toThrow(TooLarge)
  })

  test('keys and sources count as well', () => {
    const keys = Object.fromEntries(Array.from({ length: 300 }, (_, i) => ['k'.repeat(4_000) + i, 0]))
    expect(() => validateNew({ type: 'acme/note', data: keys, ignorable: true })).toThrow(TooLarge)
    const sourceEventSeqs = Array.from({ length: 65_000 }, (_, i) => Number.MAX_SAFE_INTEGER - i)
    expect(() => validateNew({ ...answer('hi'), surfaceOp: 'append', sourceEventSeqs })).toThrow(TooLarge)
  })
})

describe('an event in its place', () => {
  test('is frozen and cites earlier events only', () => {
    const valid = validateNew(userMessage({ sourceEventSeqs: [3] }))
    expect(Object.isFrozen(placed(valid, 4, 0))).toBe(true)
    expect(() => placed(valid, 3, 0)).toThrow('source event 3 is not earlier than seq 3')
  })
})

describe('an event read back', () => {
  const stored = (more: object = {}) => ({ ...turnStart(), seq: 5, time: 100, ...more })
  const read = (event: unknown) => validateStored(event, 5, 100)
  const refused = (event: unknown): unknown => {
    try {
      return read(event)
    } catch (error) {
      return error
    }
  }

  test('is the event that was written', () => {
    const log = logOf(toolTurn())
    let time = 0
    for (const event of JSON.parse(JSON.stringify(log))) {
      expect(validateStored(event, event.seq, time)).toEqual(log[event.seq])
      time = event.time
    }
  })

  test('is frozen', () => {
    const event = read(stored())
    expect(Object.isFrozen(event) && Object.isFrozen(event.data)).toBe(true)
  })

  test.each<[string, unknown, string]>([
    ['a gap', stored({ seq: 6 }), 'SEQ-CONTIGUOUS'],
    ['a seq again', stored({ seq: 4 }), 'SEQ-CONTIGUOUS'],
    ['no seq', turnStart(), 'SEQ-CONTIGUOUS'],
    ['time going back', stored({ time: 99 }), 'TIME-MONOTONE'],
    ['half a millisecond', stored({ time: 100.5 }), 'ENVELOPE'],
    ['time before there was any', stored({ time: -1 }), 'ENVELOPE'],
    ['time in words', stored({ time: 'now' }), 'ENVELOPE'],
    ['an unknown key', stored({ epoch: 1 }), 'ENVELOPE'],
    ['no object', 7, 'ENVELOPE'],
    ['no type', stored({ type: undefined }), 'ENVELOPE'],
    ['a source to come', { ...userMessage({ sourceEventSeqs: [5] }), seq: 5, time: 100 }, 'ENVELOPE'],
    ['data of another shape', stored({ data: { turn: 'one' } }), 'DATA'],
    ['data that is not JSON', stored({ data: undefined }), 'DATA'],
  ])('with %s is refused', (_, event, rule) => {
    expect(refused(event)).toBeInstanceOf(InvalidLog)
    expect(refused(event)).toMatchObject({ seq: 5, rule })
  })

  test('may be of the first millisecond, and its time is said to be wrong by what it should be', () => {
    expect(validateStored(stored({ time: 0 }), 5, 0).time).toBe(0)
    expect(() => read(stored({ time: 'now' }))).toThrow('`time` must be epoch milliseconds')
  })

  test('is not called damaged for a fault of whoever read it', () => {
    const fault = new RangeError('the disk went away')
    const surfaceOp = new Proxy(
      {},
      {
        ownKeys() {
          throw fault
        },
      },
    )
    expect(refused({ ...userMessage({ surfaceOp }), seq: 5, time: 100 })).toBe(fault)
  })

  test('of an unknown type is from a newer version, unless it may be ignored', () => {
    expect(refused(stored({ type: 'turn/pause' }))).toBeInstanceOf(LogTooNew)
    expect(refused(stored({ type: 'turn/pause' }))).toMatchObject({ type: 'turn/pause' })
    expect(read(stored({ type: 'turn/pause', ignorable: true }))).toMatchObject({ type: 'turn/pause', seq: 5 })
  })
})

test('no shape has changed yet, so every event is today’s already', () => {
  const event = { type: 'turn/start', seq: 0, time: 0, data: {} }
  expect(upcast(event)).toBe(event)
  expect(upcast(null)).toBe(null)
})

test('every known type has its shape checked: none takes a bare string', () => {
  for (const type of KNOWN)
    expect(() => validateNew({ type, data: 'text', surfaceOp: undefined })).toThrow(InvalidEvent)
})
