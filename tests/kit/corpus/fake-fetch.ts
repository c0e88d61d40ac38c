/** A transport without a network: whole plays take a fraction of a millisecond, so a body can be cut at every byte. */
import type { ManualClock } from '../manual-clock.ts'
import type { CorpusReply } from './format.ts'
import { isBytes, type Packet } from './packets.ts'

/** Runs `act` with a `fetch` that answers every request with this reply, its body in these packets. */
export async function withReply<T>(
  { status = 200, headers }: CorpusReply,
  packets: readonly Packet[],
  clock: ManualClock,
  act: () => Promise<T>,
): Promise<T> {
  const real = globalThis.fetch
  globalThis.fetch = async (_, init) => {
    // A server that is heard answers; only the body takes its time.
    const body = bodyOf(packets, clock, init?.signal ?? undefined)
    const type = { 'content-type': 'text/event-stream' }
    return new Response(status === 204 ? null : body, { status, headers: { ...type, ...headers } })
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
