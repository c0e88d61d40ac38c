/** What any store holds: the events as they were given, whole batches only, and nothing that was not asked for. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { NotJson, SeqConflict } from '../../src/log/errors.ts'
import type { LogStore } from '../../src/log/store.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { sqliteStore } from '../../src/log/stores/sqlite.ts'
import { scripted, text } from '../../src/services/adapters/scripted.ts'
import { startAgent, stored } from '../kit/agents.ts'
import { chunk, chunks, collect, fill, own } from '../kit/store-contract/fixtures.ts'

function sqliteInFolder(): LogStore {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-persist-'))
  const store = sqliteStore(join(folder, 'p.db'))
  onTestFinished(async () => {
    await store[Symbol.asyncDispose]()
    rmSync(folder, { recursive: true, force: true })
  })
  return store
}

describe.each([
  { name: 'memory', open: memoryStore },
  { name: 'sqlite', open: sqliteInFolder },
])('$name store', ({ open }) => {
  test('[persist-001] header and events are read back byte for byte, chunks included', async () => {
    const store = open()
    const told: unknown[] = []
    await using started = await startAgent({ store, model: scripted([[text('é 𝒳 one two', { deltas: 4 })]]) })
    started.agent.on('session/event', (event) => void told.push(event))
    await started.agent.run('go')
    expect(JSON.stringify(await started.log())).toBe(JSON.stringify(told))
    expect(told.length).toBeGreaterThan(10)
    expect(JSON.stringify(await store.header('session'))).toBe(JSON.stringify(started.agent.session.header))
  })

  // Replaced: a session is there, and in the list, from the moment that somebody owned it.
  test('[persist-002] asking for a session makes none; one that was opened is listed, though it has no event', async () => {
    const store = open()
    expect([await stored(store, 's'), await collect(store.list())]).toEqual([[], []])
    await (await own(store)).release()
    expect(await collect(store.list())).toMatchObject([{ id: 's', head: 0, state: 'idle', owed: false }])
  })

  test('[persist-004] a batch with a gap is refused as a whole', async () => {
    const store = open()
    const owner = await own(store)
    await fill(owner, 0, 5)
    await expect(owner.append([chunk(5), chunk(7)], { expectedSeq: 5 })).rejects.toThrow(SeqConflict)
    expect(await stored(store, 's')).toEqual(chunks(0, 5))
    await owner.release()
  })

  test('[persist-005] data that is no JSON is refused by its type’s name before it is recorded, and the agent goes on', async () => {
    await using started = await startAgent({ store: open() })
    const { agent } = started
    const before = await started.log()
    const note = () => agent.session.note('acme/count', { deep: [1n] })
    expect(note).toThrow(NotJson)
    expect(note).toThrow(/acme\/count/)
    expect(await started.log()).toEqual(before)
    expect((await agent.run('hi')).reason).toEqual({ kind: 'completed' })
  })

  test('[persist-006] what a caller does to its batch afterwards changes no log', async () => {
    const store = open()
    const owner = await own(store)
    const batch = [structuredClone(chunk(0)), structuredClone(chunk(1))]
    const appended = owner.append(batch, { expectedSeq: 0 })
    batch.pop()
    Object.assign(batch[0]?.data ?? {}, { turn: 9 })
    await appended
    batch.length = 0
    expect(await stored(store, 's')).toEqual(chunks(0, 2))
    await owner.release()
  })

  test('[persist-007] an append of nothing stores nothing', async () => {
    const store = open()
    const owner = await own(store)
    await owner.append([], { expectedSeq: 0 })
    expect([await stored(store, 's'), (await collect(store.list()))[0]?.head]).toEqual([[], 0])
    await fill(owner, 0, 1)
    expect(await stored(store, 's')).toHaveLength(1)
    await owner.release()
  })

  test('[persist-008] a read from a seq is the rest as it is stored: an open turn stays open, and nothing is written', async () => {
    const store = open()
    const owner = await own(store)
    await fill(owner, 0, 10)
    await owner.release()
    const before = await collect(store.list())
    expect(await collect(store.read('s', { from: 6 }))).toEqual(chunks(6, 4))
    expect([await stored(store, 's'), await collect(store.list())]).toEqual([chunks(0, 10), before])
  })
})
