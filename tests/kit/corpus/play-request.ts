/** A history becomes a request, and its body is what the file expects. */
import type { Json } from '../../../src/log/json.ts'
import { ask, finishIn } from '../ask-adapter.ts'
import { manualClock } from '../manual-clock.ts'
import { answer, wireServer } from '../wire-server.ts'
import type { RequestFile } from './format.ts'
import { messagesOf } from './history.ts'
import { adapterFor } from './make-adapter.ts'
import { difference } from './match.ts'
import { Mismatch, type Played } from './played.ts'
import { unsendable } from './wire-history.ts'

/** @throws Mismatch */
export async function playRequest({ adapter: spec = {}, history, expect }: RequestFile): Promise<Played> {
  await using server = await wireServer([{ body: answer({ text: 'ok' }) }])
  const adapter = adapterFor(spec, { baseURL: server.url, clock: manualClock() })
  const chunks = await ask(adapter, { messages: messagesOf(history, adapter) })
  const body = server.requests[0]?.body
  const finish = finishIn(chunks)
  const failure = finish?.kind === 'error' ? finish.failure : undefined
  const wrong = body === undefined ? undefined : unsendable(body)
  if (wrong !== undefined) throw new Mismatch(`no server takes the body: ${wrong}`)
  const found = difference({ failure: null, ...expect } as Json, { ...body, failure })
  if (found !== undefined) throw new Mismatch(found)
  return { splits: 0, http: true }
}
