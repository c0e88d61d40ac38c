/** A loopback server that sends the same bytes for ever, as fast as they are taken. */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'

export interface FloodServer extends AsyncDisposable {
  readonly url: string
  /** Resolves when the connection of the first request has closed. */
  readonly closed: Promise<void>
}

/** Sends `head`, then `piece` over and over; `after` ends it after that many pieces with `tail`. */
export async function floodServer(flood: {
  readonly type?: string
  readonly head?: string
  readonly piece: string
  readonly after?: number
  readonly tail?: string
}): Promise<FloodServer> {
  const { type = 'text/event-stream', head = '', after = Number.POSITIVE_INFINITY, tail = '' } = flood
  const piece = Buffer.from(flood.piece)
  let close = () => {}
  const closed = new Promise<void>((resolve) => {
    close = resolve
  })
  const server = createServer(async (request, response) => {
    request.resume()
    response.once('close', close)
    response.writeHead(200, { 'content-type': type })
    response.write(head)
    for (let sent = 0; sent < after && !response.destroyed; sent++) if (!response.write(piece)) await drained(response)
    response.end(tail)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`,
    closed,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Or left by the other side. */
const drained = (response: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    const go = () => {
      response.off('drain', go).off('close', go)
      resolve()
    }
    response.once('drain', go).once('close', go)
  })
