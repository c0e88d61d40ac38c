/** Node's own limits on waiting, which are shorter than ours may be. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { SHARED } from '../../../../src/services/adapters/chat-completions/dispatcher.ts'
import { openaiCompatible } from '../../../../src/services/adapters/openai-compatible.ts'
import { ask, failureIn, finishIn } from '../../../kit/ask-adapter.ts'
import { answer, type Reply, wireServer } from '../../../kit/wire-server.ts'

interface Dispatcher {
  readonly constructor: new (limits: { headersTimeout: number; bodyTimeout: number }) => object
}
let before: Dispatcher | undefined

/** A process whose dispatcher waits for a second where Node's waits for 300: its timers are no finer. */
beforeAll(async () => {
  await fetch('data:,')
  before = Reflect.get(globalThis, SHARED)
  if (before !== undefined) setShared(new before.constructor({ headersTimeout: 500, bodyTimeout: 500 }))
})
afterAll(() => setShared(before))

const setShared = (value: unknown) =>
  Object.defineProperty(globalThis, SHARED, { value, writable: true, enumerable: false, configurable: false })

const lateHeaders: Reply = { delayMs: 2_500, body: answer({ text: 'late' }) }
const lateBody: Reply = {
  body: [...answer({ text: 'a' }).slice(0, 1), { kind: 'wait', ms: 2_500 }, ...answer({ text: 'late' })],
}

async function told(reply: Reply, idleTimeoutMs: number) {
  await using server = await wireServer([reply])
  return await ask(openaiCompatible({ baseURL: server.url, model: 'm', idleTimeoutMs }))
}

test.concurrent.each([
  ['headers', lateHeaders],
  ['a byte', lateBody],
])('a limit above Node’s outlasts it while there are no %s', async (_, reply) => {
  expect(finishIn(await told(reply, 300_001))).toEqual({ kind: 'stop' })
})

test.concurrent.each([
  ['headers', lateHeaders],
  ['a byte', lateBody],
])('Node’s limit, where ours is no longer, is a timeout too: no %s', async (_, reply) => {
  expect(failureIn(await told(reply, 300_000)).code).toBe('TIMEOUT')
})
