/**
 * The model server of the benchmarks, as a process of its own so that it takes no time from who is measured. The first
 * part of a request's path names the answer: `/tokens/v1/chat/completions`.
 */
import { createServer } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { answers } from './answers.mjs'

const server = createServer(async (request, response) => {
  request.resume()
  const name = request.url?.split('/')[1] ?? ''
  const answer = Object.hasOwn(answers, name) ? answers[name] : undefined
  response.writeHead(answer === undefined ? 404 : 200, {
    'content-type': answer?.type ?? 'text/event-stream',
    'cache-control': 'no-cache',
  })
  let first = true
  for (const piece of answer?.pieces() ?? []) {
    if (response.destroyed) return
    if (!response.write(piece)) await drained(response)
    if (answer?.pauseMs !== undefined && first) await setTimeout(answer.pauseMs)
    first = false
  }
  response.end()
})

server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  process.send?.(typeof address === 'object' && address !== null ? `http://127.0.0.1:${address.port}` : '')
})
process.on('disconnect', () => process.exit())

/** Also when the other side has left. @param {import('node:http').ServerResponse} response */
const drained = (response) =>
  new Promise((resolve) => {
    const go = () => {
      response.off('drain', go).off('close', go)
      resolve(undefined)
    }
    response.once('drain', go).once('close', go)
  })
