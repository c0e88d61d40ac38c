/**
 * A loopback model server: speaks the chat-completions stream on 127.0.0.1, in packets as awkward as asked for, and
 * keeps the requests it got. Every request takes the next reply; asked for more than it has, it answers 599.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { setTimeout as after } from 'node:timers/promises'

/** How the bytes of a body are cut into packets. */
export type Split =
  /** One step of the body a packet. */
  | 'steps'
  /** All steps in one packet. */
  | 'packet'
  /** One byte a packet. */
  | 'bytes'
  /** Inside every character of several bytes, and between CR and LF. */
  | 'inside'

/** A piece of a body: text, bytes, or something that happens. */
export type Step =
  | string
  | Uint8Array
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'hang' | 'cut' }

export interface Reply {
  /** 200 by default. */
  readonly status?: number
  /** Beside `content-type: text/event-stream`. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: readonly Step[]
  /** 'steps' by default. */
  readonly split?: Split
  /** What lines of text end with; '\n' by default. */
  readonly eol?: '\n' | '\r\n' | '\r'
  /** ms before the headers. */
  readonly delayMs?: number
}

/** A request as it came; `closed` resolves when its connection has closed. */
export interface WireRequest {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: Record<string, unknown>
  readonly closed: Promise<void>
}

export interface WireServer extends AsyncDisposable {
  /** The base URL for an adapter. */
  readonly url: string
  readonly requests: readonly WireRequest[]
  close(): Promise<void>
}

/** Starts a server; close it, or use it with `await using`. */
export async function wireServer(
  replies: readonly Reply[] | ((request: WireRequest, n: number) => Reply),
): Promise<WireServer> {
  const requests: WireRequest[] = []
  const replyTo = typeof replies === 'function' ? replies : (_: WireRequest, n: number) => replies[n] ?? { status: 599 }
  const stopped = new AbortController()
  const server = createServer(async (incoming, response) => {
    incoming.socket.setNoDelay(true)
    const request = await requestOf(incoming, response)
    const n = requests.push(request) - 1
    await serve(response, replyTo(request, n), AbortSignal.any([stopped.signal, gone(response)])).catch(ignoreAbort)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const close = async () => {
    stopped.abort()
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  return { url: `http://127.0.0.1:${port}`, requests, close, [Symbol.asyncDispose]: close }
}

/** One event. An object is sent as JSON. */
export const event = (payload: unknown): string =>
  `data: ${typeof payload === 'string' ? payload : JSON.stringify(payload)}\n\n`

/** One event with a delta of the first choice. */
export const delta = (fields: Readonly<Record<string, unknown>>): string =>
  event({ id: 'r', object: 'chat.completion.chunk', choices: [{ index: 0, delta: fields, finish_reason: null }] })

/** One event that says why the model stopped. */
export const stopped = (finish_reason: string, fields: Readonly<Record<string, unknown>> = {}): string =>
  event({ choices: [{ index: 0, delta: fields, finish_reason }] })

/** One event that only counts tokens. */
export const counted = (usage: Readonly<Record<string, unknown>>): string => event({ choices: [], usage })

/** The end of a stream. */
export const DONE = event('[DONE]')

export interface Said {
  readonly reasoning?: string
  readonly text?: string
  readonly calls?: readonly { readonly id?: string; readonly name: string; readonly arguments: string }[]
  readonly usage?: Readonly<Record<string, unknown>>
  /** 'tool_calls' after calls, else 'stop', by default. */
  readonly finish?: string
}

/** The steps of a whole answer: words in pieces of up to three characters, then calls, finish, usage, the end. */
export function answer(said: Said): string[] {
  const calls = said.calls ?? []
  return [
    delta({ role: 'assistant', content: '' }),
    ...pieces(said.reasoning).map((reasoning_content) => delta({ reasoning_content })),
    ...pieces(said.text).map((content) => delta({ content })),
    ...calls.flatMap(callSteps),
    stopped(said.finish ?? (calls.length > 0 ? 'tool_calls' : 'stop')),
    ...(said.usage ? [counted(said.usage)] : []),
    DONE,
  ]
}

/** A refusal with a JSON body. */
export const refusal = (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Reply => ({
  status,
  headers: { 'content-type': 'application/json', ...headers },
  body: [JSON.stringify(body)],
})

const pieces = (words = ''): string[] => words.match(/.{1,3}/gsu) ?? []

function callSteps(call: NonNullable<Said['calls']>[number], index: number): string[] {
  const { id, name } = call
  const first = { index, ...(id !== undefined && { id }), type: 'function', function: { name, arguments: '' } }
  const rest = pieces(call.arguments).map((args) => ({ index, function: { arguments: args } }))
  return [first, ...rest].map((fragment) => delta({ tool_calls: [fragment] }))
}

async function requestOf(incoming: IncomingMessage, response: ServerResponse): Promise<WireRequest> {
  const parts: Buffer[] = []
  for await (const part of incoming) parts.push(part)
  const text = Buffer.concat(parts).toString('utf8')
  const closed = once(response, 'close').then(() => undefined)
  const { method = '', url: path = '', headers } = incoming
  return { method, path, headers, body: text === '' ? {} : JSON.parse(text), closed }
}

async function serve(response: ServerResponse, reply: Reply, signal: AbortSignal): Promise<void> {
  if (reply.delayMs !== undefined) await after(reply.delayMs, undefined, { signal })
  response.writeHead(reply.status ?? 200, { 'content-type': 'text/event-stream', ...reply.headers })
  response.flushHeaders()
  for (const step of packetsOf(reply)) {
    if (step instanceof Uint8Array) await send(response, step)
    else if (step.kind === 'wait') await after(step.ms, undefined, { signal })
    else if (step.kind === 'cut') return void response.socket?.destroy()
    else return
  }
  response.end()
}

/** Let the packet leave on its own before the next one. */
async function send(response: ServerResponse, packet: Uint8Array): Promise<void> {
  await new Promise((resolve) => response.write(packet, resolve))
  await new Promise(setImmediate)
}

type Packet = Exclude<Step, string>

function packetsOf({ body = [], split = 'steps', eol = '\n' }: Reply): readonly Packet[] {
  const steps = body.map((step): Packet => (typeof step === 'string' ? Buffer.from(step.replaceAll('\n', eol)) : step))
  if (split === 'packet') return joined(steps)
  if (split === 'steps') return steps
  return joined(steps).flatMap((step): readonly Packet[] => (step instanceof Uint8Array ? cut(step, split) : [step]))
}

function joined(steps: readonly Packet[]): readonly Packet[] {
  return steps.reduce<Packet[]>((packets, step) => {
    const last = packets.at(-1)
    if (last instanceof Uint8Array && step instanceof Uint8Array) packets.splice(-1, 1, Buffer.concat([last, step]))
    else packets.push(step)
    return packets
  }, [])
}

function cut(bytes: Uint8Array, split: 'bytes' | 'inside'): Uint8Array[] {
  const packets: Uint8Array[] = []
  let from = 0
  for (let at = 1; at <= bytes.length; at++) {
    const here = at === bytes.length || split === 'bytes' || isInside(bytes[at - 1] ?? 0, bytes[at] ?? 0)
    if (!here) continue
    packets.push(bytes.subarray(from, at))
    from = at
  }
  return packets
}

const isInside = (before: number, next: number): boolean => (next & 0xc0) === 0x80 || (before === 13 && next === 10)

function gone(response: ServerResponse): AbortSignal {
  const controller = new AbortController()
  response.once('close', () => controller.abort())
  return controller.signal
}

function ignoreAbort(thrown: unknown): void {
  if (!(thrown instanceof Error && thrown.name === 'AbortError')) throw thrown
}
