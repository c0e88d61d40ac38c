/** Appends: all of a batch or none of it, at the head or not at all, and each session for itself. */
import { expect, test } from 'vitest'
import { Fenced, NotJson, SeqConflict } from '../../../src/log/errors.ts'
import type { SessionEvent } from '../../../src/log/events.ts'
import type { LogStore } from '../../../src/log/store.ts'
import {
  anyRefusal,
  chunk,
  chunks,
  collect,
  command,
  fill,
  header,
  logOf,
  type OpenStore,
  openedStore,
  own,
  range,
  refusal,
  seqsOf,
} from './fixtures.ts'

/** Values that encodings like to change: odd keys, order of keys, large and tiny numbers, every kind of text. */
const ODD_EVENTS = `[
  {"type":"acme/odd","seq":0,"time":1,"data":{"z":1,"a":{"__proto__":{"x":1},"constructor":"c","":0},"10":1,"9":2},"ignorable":true},
  {"type":"acme/numbers","seq":1,"time":1,"data":[1e21,5e-324,9007199254740991,-1.5,0.1,1.7976931348623157e308],"ignorable":true},
  {"type":"acme/text","seq":2,"time":9,"data":["\\u0000","\\ud800","\\u2028","𝒳 é 漢","'\\"\\\\\\n","",null,true,[],{}],"ignorable":true},
  {"type":"later/unknown-type","seq":3,"time":9,"data":{}},
  {"type":"turn/start","seq":4,"time":9,"data":{"turn":1,"limits":{"maxSteps":50,"maxParallelToolCalls":10}}},
  {"type":"user/message","seq":5,"time":10,"surfaceOp":{"op":"replace","start":1,"end":2},"sourceEventSeqs":[1,2],
   "data":{"id":"m","role":"user","content":[{"type":"text","text":"hi"}],"source":{"kind":"user"}}}
]`

/** Deltas without their seqs: some are neighbours of one block, and some only look like it. */
const ODD_DELTAS = `[
  {"type":"assistant/chunk","time":5,"data":{"turn":1,"step":1,"attempt":1,"chunk":{"type":"text-delta","index":0,"text":"a"}}},
  {"type":"assistant/chunk","time":5,"data":{"turn":1,"step":1,"attempt":1,"chunk":{"type":"text-delta","index":0,"text":"b"}}},
  {"type":"assistant/chunk","time":9,"data":{"turn":1,"step":1,"attempt":1,"chunk":{"type":"text-delta","index":0,"text":""}}},
  {"type":"assistant/chunk","time":9,"data":{"turn":1,"step":1,"attempt":1,"chunk":{"type":"text-delta","index":0,"text":"\\ud83d"}}},
  {"type":"assistant/chunk","time":9,"data":{"turn":1,"step":1,"attempt":1,"chunk":{"type":"text-delta","index":0,"text":"\\ude00"}}},
  {"type":"assistant/chunk","time":3,"data":{"turn":1,"step":1,"attempt":1,"chunk":{"type":"text-delta","index":0,"text":"back in time"}}},
  {"type":"assistant/chunk","time":9,"data":{"turn":1,"step":1,"attempt":2,"chunk":{"type":"text-delta","index":0,"text":"another attempt"}}},
  {"type":"assistant/chunk","time":9,"data":{"turn":1,"step":1,"attempt":2,"chunk":{"type":"text-delta","index":1,"text":"another block"}}},
  {"type":"assistant/chunk","time":9,"data":{"turn":1,"step":1,"attempt":2,"chunk":{"type":"reasoning-delta","index":1,"text":"another type"}}},
  {"type":"assistant/chunk","time":9,"data":{"turn":1,"step":1,"attempt":2,"chunk":{"type":"tool-call-delta","index":1,"argumentsDelta":"{"}}},
  {"type":"assistant/chunk","time":9,"data":{"turn":1,"step":1,"attempt":2,"chunk":{"type":"tool-call-delta","index":1,"argumentsDelta":"}"}}},
  {"type":"assistant/chunk","time":9,"data":{"turn":1,"step":1,"attempt":2,"chunk":{"type":"tool-call-delta","index":1,"text":"no arguments"}}},
  {"type":"assistant/chunk","time":9,"data":{"turn":1,"step":1,"attempt":2,"chunk":{"type":"text-delta","index":1,"text":"more"},"later":1}},
  {"type":"assistant/chunk","time":9,"data":{"turn":1,"step":1,"attempt":2,"chunk":{"type":"text-delta","index":1,"text":"marked"}},"ignorable":true},
  {"data":{"turn":1,"step":1,"attempt":2,"chunk":{"type":"text-delta","index":1,"text":"turned"}},"time":9,"type":"assistant/chunk"},
  {"type":"assistant/chunk","time":9,"data":{"turn":1,"step":1,"attempt":2,"chunk":{"text":"turned inside","type":"text-delta","index":1}}},
  {"type":"assistant/chunk","time":9,"data":{"turn":1,"step":1,"other":2,"chunk":{"type":"text-delta","index":1,"text":"no attempt"}}},
  {"type":"assistant/chunk","time":9.5,"data":{"turn":1,"step":1,"attempt":2,"chunk":{"type":"text-delta","index":1,"text":"half a time"}}},
  {"type":"assistant/chunk","time":9,"data":{"turn":1,"step":1,"attempt":2,"chunk":{"type":"text-delta","index":1,"text":7}}},
  {"type":"assistant/chunk","time":9,"data":{"turn":1,"step":1,"attempt":2,"chunk":{"type":"text-delta","index":"x","text":"no index"}}},
  {"type":"assistant/chunk","time":9,"data":{"turn":1,"step":1,"attempt":2,"chunk":{"type":"text-delta","index":1,"text":"the last"}}}
]`

export function append(open: OpenStore): void {
  test('what was appended is read back exactly, keys in their order, unknown types included', async () => {
    const store = await openedStore(open)
    const events: SessionEvent[] = JSON.parse(ODD_EVENTS)
    await (await own(store)).append(events, { expectedSeq: 0 })
    expect(JSON.stringify(await logOf(store))).toBe(JSON.stringify(JSON.parse(ODD_EVENTS)))
  })

  test('neighbouring deltas are read back exactly, whatever is odd about one of them', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    const events: SessionEvent[] = JSON.parse(ODD_DELTAS).map((event: object, seq: number) => {
      const [first = ['type', 0], ...rest] = Object.entries(event)
      return Object.fromEntries([first, ['seq', seq], ...rest])
    })
    await owner.append(events.slice(0, 4), { expectedSeq: 0 })
    await owner.append(events.slice(4), { expectedSeq: 4 })
    expect(JSON.stringify(await logOf(store))).toBe(JSON.stringify(events))
    expect(JSON.stringify(await collect(store.read('s', { from: 3 })))).toBe(JSON.stringify(events.slice(3)))
  })

  test('batches follow each other; an event is readable once its append resolved', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    for (const [from, count] of [
      [0, 1],
      [1, 7],
      [8, 300],
      [308, 1],
    ] as const) {
      await fill(owner, from, count)
      expect(await seqsOf(store.read('s'))).toEqual(range(0, from + count))
    }
  })

  test('a large batch is one batch', async () => {
    const store = await openedStore(open)
    await (await own(store)).append(chunks(0, 5_000, 'x'.repeat(200)), { expectedSeq: 0 })
    expect(await seqsOf(store.read('s'))).toEqual(range(0, 5_000))
  })

  test('an event of nearly a megabyte is taken', async () => {
    const store = await openedStore(open)
    const large = chunk(0, 'é'.repeat(500_000))
    await (await own(store)).append([large], { expectedSeq: 0 })
    expect(await logOf(store)).toEqual([large])
  })

  test.each([
    ['before the head', 1],
    ['beyond the head', 5],
  ])('an append %s is a SeqConflict and writes nothing', async (_, seq) => {
    const store = await openedStore(open)
    const owner = await own(store)
    await fill(owner, 0, 3)
    expect(await refusal(fill(owner, seq, 2), SeqConflict)).toMatchObject({ expected: seq, actual: 3 })
    await refusal(owner.append([], { expectedSeq: seq }), SeqConflict)
    expect(await logOf(store)).toEqual(chunks(0, 3))
    await fill(owner, 3, 1)
  })

  test.each([
    ['a gap', [chunk(0), chunk(2)], { expected: 2, actual: 1 }],
    ['a repeated seq', [chunk(0), chunk(0)], { expected: 0, actual: 1 }],
    ['another first seq than it names', [chunk(1), chunk(2)], { expected: 1, actual: 0 }],
  ])('a batch with %s is a SeqConflict and writes nothing', async (_, events, seqs) => {
    const store = await openedStore(open)
    const owner = await own(store)
    expect(await refusal(owner.append(events, { expectedSeq: 0 }), SeqConflict)).toMatchObject(seqs)
    expect(await logOf(store)).toEqual([])
    await fill(owner, 0, 1)
  })

  test('a batch whose last event is not JSON writes nothing', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    const cyclic: Record<string, unknown> = {}
    cyclic.self = cyclic
    const bad: SessionEvent = Object.assign(chunk(1), { data: cyclic })
    await anyRefusal(owner.append([chunk(0), bad], { expectedSeq: 0 }))
    expect(await logOf(store)).toEqual([])
    await fill(owner, 0, 1)
  })

  test.each([
    ['NaN', Number.NaN],
    ['undefined', undefined],
    ['negative zero', -0],
    ['a date', new Date(0)],
    ['a function', () => 1],
    ['a map', new Map([[1, 2]])],
    ['a hole', new Array(2)],
    ['a frozen hole', Object.freeze(new Array(2))],
    ['something that speaks for itself', { toJSON: () => undefined }],
  ])('%s is not JSON, and in no event, command or header', async (_, bad) => {
    const store = await openedStore(open)
    const owner = await own(store)
    const event: SessionEvent = Object.freeze(Object.assign(chunk(1), { data: bad }))
    await refusal(owner.append([chunk(0), event], { expectedSeq: 0 }), NotJson)
    await refusal(store.post('s', Object.assign(command('c'), { message: bad })), NotJson)
    await refusal(store.acquire('t', { create: Object.assign(header('t'), { meta: bad }) }), NotJson)
    expect(await logOf(store)).toEqual([])
    expect(await store.header('t')).toBeUndefined()
    await fill(owner, 0, 1)
  })

  test('of two appends at the same head, one is written', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    const both = await Promise.allSettled([
      owner.append(chunks(0, 2, 'a'), { expectedSeq: 0 }),
      owner.append(chunks(0, 2, 'b'), { expectedSeq: 0 }),
    ])
    expect(both.map((result) => result.status).sort()).toEqual(['fulfilled', 'rejected'])
    expect(await logOf(store)).toEqual(chunks(0, 2, both[0].status === 'fulfilled' ? 'a' : 'b'))
  })

  test("one session's failure never rolls back another's", async () => {
    const store = await openedStore(open)
    const ids = range(0, 40).map((i) => `s${i}`)
    const owners = await Promise.all(ids.map((id) => own(store, id)))
    await store.acquire('s7', { steal: true })
    const results = await Promise.allSettled(owners.map((owner, i) => fill(owner, i === 23 ? 1 : 0, 3)))
    for (const [i, id] of ids.entries()) {
      const result = results[i]
      if (i === 7 || i === 23) {
        expect(result).toMatchObject({ status: 'rejected' })
        expect(result?.status === 'rejected' && result.reason).toBeInstanceOf(i === 7 ? Fenced : SeqConflict)
      } else expect(result?.status).toBe('fulfilled')
      expect(await seqsOf(store.read(id))).toEqual(i === 7 || i === 23 ? [] : [0, 1, 2])
    }
  })

  test('many sessions append at once, each in its own order', async () => {
    const store = await openedStore(open)
    const ids = range(0, 25).map((i) => `s${i}`)
    await Promise.all(ids.map((id) => appendOneByOne(store, id, 12)))
    for (const id of ids) expect(await logOf(store, id)).toEqual(chunks(0, 12, id))
  })

  test('what the caller does to its objects after an append changes no log', async () => {
    const store = await openedStore(open)
    const facts = header('s', { meta: { tags: ['first'] } })
    const owner = await store.acquire('s', { create: facts })
    const events = chunks(0, 2)
    const frozen = Object.freeze({ ...chunk(2), data: { ...chunk(2).data, extra: { list: [1] } } })
    await owner.append([...events, frozen], { expectedSeq: 0 })
    const before = JSON.stringify(await logOf(store))
    Object.assign(events[0] ?? {}, { type: 'turn/end' })
    Object.assign(events[1]?.data ?? {}, { turn: 99 })
    frozen.data.extra.list.push(2)
    events.length = 0
    Object.assign(facts, { meta: 'changed' })
    expect(JSON.stringify(await logOf(store))).toBe(before)
    expect((await store.header('s'))?.meta).toEqual({ tags: ['first'] })
  })

  test('what a reader does to the events it got changes no log', async () => {
    const store = await openedStore(open)
    await fill(await own(store), 0, 2)
    for await (const event of store.read('s')) {
      try {
        Object.assign(event.data, { turn: 99 })
      } catch (error) {
        // A store may hand out frozen events; then nothing was changed at all.
        expect(error).toBeInstanceOf(TypeError)
      }
    }
    expect(await collect(store.read('s'))).toEqual(chunks(0, 2))
  })
}

async function appendOneByOne(store: LogStore, id: string, count: number): Promise<void> {
  const owner = await own(store, id)
  for (const seq of range(0, count)) await owner.append([chunk(seq, id)], { expectedSeq: seq })
}
