/** A transport without a network: whole plays take a fraction of a millisecond, so a body can be cut at every byte. */
import type { ManualClock } from '../manual-clock.ts'
import type { CorpusReply } from './format.ts'
import { isBytes, type Packet } from './packets.ts'

/** An answer of the server: what it says, and in which packets its body comes. */
export interface FakeReply extends Pick<CorpusReply, 'status' | 'headers'> {
  readonly packets: readonly Packet[]
}

type Body = Readonly<Record<string, unknown>>

/** Runs `act` with a `fetch` that is answered by `serve`, which is given each request's body. */
export async function withServer<T>(
  serve: (request: Body) => FakeReply,
  clock: ManualClock,
  act: () => Promise<T>,
): Promise<T> {
  const real = globalThis.fetch
  globalThis.fetch = async (_, init) => {
    const { status = 200, headers, packets } = serve(JSON.parse(String(init?.body)))
    const body = status === 204 ? null : bodyOf(packets, clock, init?.signal ?? undefined)
    return new Response(body, { status, headers: { 'content-type': 'text/event-stream', ...headers } })
  }
  try {
    return await act()
  } finally {
    globalThis.fetch = real
  }
}

/** Each packet leaves when it is asked for, so that a break does not overtake what came before it. */
function bodyOf(
  packets: readonly Packet[],
  clock: ManualClock,
  signal: AbortSignal | undefined,
): ReadableStream<Uint8Array> {
  let next = 0
  return new ReadableStream(
    {
      start(controller) {
        signal?.addEventListener('abort', () => controller.error(signal.reason), { once: true })
      },
      async pull(controller) {
        for (let packet = packets[next++]; packet !== undefined; packet = packets[next++]) {
          if (signal?.aborted) return
          if (isBytes(packet)) return controller.enqueue(packet)
          if ('wait' in packet) await pass(clock, packet.wait)
          else if (packet.end === 'reset') return controller.error(new TypeError('the connection broke'))
          // An open end: the abort ends it, nothing else does.
          else return new Promise(() => {})
        }
        if (!signal?.aborted) controller.close()
      },
    },
    { highWaterMark: 0 },
  )
}

/** Whoever waits has its timer set before time passes. */
async function pass(clock: ManualClock, ms: number): Promise<void> {
  await new Promise(setImmediate)
  clock.advance(ms)
  await new Promise(setImmediate)
}
