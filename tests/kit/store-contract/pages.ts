/** A log in pages: what `read` gives, told in stretches without its deltas. A store may leave it out. */
import { expect } from 'vitest'
import { SessionNotFound } from '../../../src/log/errors.ts'
import type { SessionEvent } from '../../../src/log/events.ts'
import type { LogStore, StoredPage } from '../../../src/log/store.ts'
import {
  chunk,
  collect,
  fill,
  logOf,
  type OpenStore,
  openedStore,
  own,
  range,
  refusal,
  testUnless,
} from './fixtures.ts'

const pagesOf = (store: LogStore, from?: number): Promise<StoredPage[]> =>
  collect(store.pages?.('s', from === undefined ? {} : { from }) ?? expect.fail('this store gives no pages'))

const start = (seq: number, time = seq): SessionEvent => ({
  type: 'turn/start',
  seq,
  time,
  data: { turn: seq, limits: { maxSteps: 1, maxParallelToolCalls: 1 } },
})

/** Turns of 40 deltas, in appends of three events. */
async function turns(store: LogStore, count: number): Promise<void> {
  const owner = await own(store)
  const events = range(0, count * 41).map((seq) => (seq % 41 === 0 ? start(seq) : { ...chunk(seq), time: seq }))
  for (let seq = 0; seq < events.length; seq += 3) await owner.append(events.slice(seq, seq + 3), { expectedSeq: seq })
}

/** What must hold of the pages of a log from `from` on. */
async function holdPages(store: LogStore, from: number): Promise<readonly StoredPage[]> {
  const log = await logOf(store)
  const pages = await pagesOf(store, from)
  let next = from
  for (const { first, count, time, events } of pages) {
    expect([first, count > 0]).toEqual([next, true])
    next += count
    expect(time).toBe(log[next - 1]?.time)
    const seqs = new Set(events.map(({ seq }) => seq))
    const stretch = log.slice(first, next)
    expect(JSON.stringify(events)).toBe(JSON.stringify(stretch.filter(({ seq }) => seqs.has(seq))))
    for (const event of stretch) if (event.type !== 'assistant/chunk') expect(seqs).toContain(event.seq)
  }
  expect(next).toBe(log.length)
  const last = log.at(-1)
  if (from < log.length) expect(JSON.stringify(pages.at(-1)?.events.at(-1))).toBe(JSON.stringify(last))
  return pages
}

/** @param reason why the store gives no pages, if it gives none. */
export function pages(open: OpenStore, reason: string | undefined): void {
  const paged = testUnless(reason)

  paged('the pages of a log are the log, without the deltas that are not its last event', async () => {
    const store = await openedStore(open)
    await turns(store, 30)
    const given = (await holdPages(store, 0)).flatMap(({ events }) => events)
    expect(given.map(({ type }) => type)).toEqual([...range(0, 30).map(() => 'turn/start'), 'assistant/chunk'])
  })

  paged('pages begin at any seq, wherever the appends ended', async () => {
    const store = await openedStore(open)
    await turns(store, 3)
    for (const from of [0, 1, 2, 3, 4, 40, 41, 42, 81, 82, 83, 121, 122]) await holdPages(store, from)
    expect(await pagesOf(store, 123)).toEqual([])
    expect(await pagesOf(store, 999)).toEqual([])
    expect((await pagesOf(store, -1))[0]?.first).toBe(0)
  })

  paged('pages end at the head they found, whatever is appended meanwhile', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    await fill(owner, 0, 5)
    let [seen, head] = [0, 5]
    for await (const { count } of store.pages?.('s') ?? []) {
      seen += count
      await fill(owner, head, 5)
      head += 5
    }
    expect(seen).toBe(5)
  })

  paged('an event whose time goes back is shown, also where it is a delta', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    const times = [5, 9, 3, 3, 9]
    await owner.append(
      times.map((time, seq) => ({ ...chunk(seq), time })),
      { expectedSeq: 0 },
    )
    const shown = (await pagesOf(store)).flatMap(({ events }) => events.map(({ seq, time }) => [seq, time]))
    expect(shown).toEqual(expect.arrayContaining([[2, 3]]))
  })

  paged('events of any kind are in pages as they are', async () => {
    const store = await openedStore(open)
    const owner = await own(store)
    const odd: SessionEvent[] = JSON.parse(
      `[{"type":"acme/odd","seq":0,"time":1,"data":{"z":1,"__proto__":{"10":1,"9":"\\ud800"}},"ignorable":true},
        {"data":{"attempt":1,"step":1,"turn":1,"chunk":{"type":"text-delta","index":0,"text":"x"}},"time":1,"seq":1,"type":"assistant/chunk"},
        {"type":"assistant/chunk","seq":2,"time":1,"data":{"turn":1,"step":1,"attempt":1,"chunk":{"index":0,"type":"text-delta","text":"x"}}},
        {"type":"assistant/chunk","seq":3,"time":1,"data":{"turn":1,"step":1,"attempt":1,"chunk":{"type":"text-delta","index":0,"text":"x"},"later":1}}]`,
    )
    await owner.append(odd, { expectedSeq: 0 })
    expect(JSON.stringify((await pagesOf(store)).flatMap(({ events }) => events))).toBe(JSON.stringify(odd))
    await holdPages(store, 2)
  })

  paged('the pages of a session that is missing are not found', async () => {
    await refusal(pagesOf(await openedStore(open)), SessionNotFound)
  })
}
