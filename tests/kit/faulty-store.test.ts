/** The faulty store's own promises: it repeats itself for a seed, meets faults where told, and answers out of order. */
import { expect, test } from 'vitest'
import { StoreFailure } from '../../src/log/errors.ts'
import type { Ownership } from '../../src/log/store.ts'
import { memoryStore } from '../../src/log/stores/memory.ts'
import { type FaultyStore, faultyStore } from './faulty-store.ts'
import { command, fill, logOf, own, range, refusal, seqsOf, turn } from './store-contract/fixtures.ts'

/** The order in which ten calls made at once are answered. */
async function answersOf(seed: number): Promise<number[]> {
  const store = faultyStore(memoryStore(), { seed, maxTurns: 5 })
  await own(store)
  const answered: number[] = []
  await Promise.all(range(0, 10).map(async (i) => answered.push((await store.header('s')) === undefined ? -1 : i)))
  return answered
}

/** Which of twenty posts fail, and which of those were done all the same. */
async function lossesOf(seed: number): Promise<{ failed: number[]; done: string[] }> {
  const inner = memoryStore()
  const owner = await own(inner)
  const store = faultyStore(inner, { seed, rates: { fail: 0.2, lose: 0.2 } })
  const failed: number[] = []
  for (const i of range(0, 20)) await store.post('s', command(`c${i}`)).catch(() => failed.push(i))
  const done: string[] = []
  await inner.post('s', command('end'))
  for await (const { id } of owner.commands(new AbortController().signal)) {
    if (id === 'end') break
    done.push(id)
  }
  return { failed, done }
}

async function ready(): Promise<FaultyStore> {
  const store = faultyStore(memoryStore(), { seed: 3 })
  await fill(await own(store), 0, 20)
  return store
}

test('answers overtake each other, and in the same way for the same seed', async () => {
  const first = await answersOf(1)
  expect(first).not.toEqual(range(0, 10))
  expect(first.toSorted((a, b) => a - b)).toEqual(range(0, 10))
  expect(await answersOf(1)).toEqual(first)
  expect(await answersOf(2)).not.toEqual(first)
})

test('calls fail and answers get lost at the given rates, and in the same way for the same seed', async () => {
  const losses = await lossesOf(5)
  expect(losses.failed.length).toBeGreaterThan(0)
  expect(losses.done.length).toBeGreaterThan(20 - losses.failed.length)
  expect(losses.done.length).toBeLessThan(20)
  expect(await lossesOf(5)).toEqual(losses)
})

test('a scripted fault is met once, by the call it was meant for', async () => {
  const store = await ready()
  store.script('header', 'fail', 2)
  store.script('header', 'lose')
  expect((await refusal(store.header('s'), StoreFailure)).reason).toBe('timeout')
  expect(await store.header('s')).toBeDefined()
  expect((await refusal(store.header('s'), StoreFailure)).reason).toBe('io')
  expect(await store.header('s')).toBeDefined()
})

test('a call that hangs is neither done nor answered', async () => {
  const store = await ready()
  store.script('delete', 'hang')
  let settled = false
  const settle = (): void => {
    settled = true
  }
  store.delete('s').then(settle, settle)
  for (const _ of range(0, 20)) await turn()
  expect(settled).toBe(false)
  expect(await seqsOf(store.read('s'))).toEqual(range(0, 20))
})

test('a read that fails has no events, one that is lost has some of them', async () => {
  const store = await ready()
  store.script('read', 'fail')
  await refusal(logOf(store), StoreFailure)
  store.script('read', 'lose')
  const seen: number[] = []
  const reading = async (): Promise<void> => {
    for await (const { seq } of store.read('s')) seen.push(seq)
  }
  await refusal(reading(), StoreFailure)
  expect(seen).toEqual(range(0, seen.length))
  expect(seen.length).toBeLessThan(20)
})

test('an answer that is late comes when it is told to: what was asked is done meanwhile', async () => {
  const store = await ready()
  store.script('read', 'late')
  const read = seqsOf(store.read('s'))
  const before = await Promise.race([read, turn().then(() => 'nothing')])
  store.answerLate()
  expect([before, await read]).toEqual(['nothing', range(0, 20)])
  store.script('acquire', 'late')
  let owner: Ownership | undefined
  const acquired = store.acquire('t', { create: { format: 1, id: 't', createdAt: 1 } }).then((given) => {
    owner = given
  })
  for (const _ of range(0, 20)) await turn()
  expect([owner, await store.header('t')]).toMatchObject([undefined, { id: 't' }])
  store.answerLate()
  await acquired
  expect(owner?.header.id).toBe('t')
})
