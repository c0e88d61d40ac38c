/**
 * A loopback model for processes that will be killed: speaks the chat-completions stream, slowly enough that kills land
 * inside it. What it answers depends on the request alone, so a request that is asked again gets the same calls.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { numberOf } from './random.mjs'

/** @typedef {{ id: string, name: string, args: unknown }} Asked a tool call of the model */
/** @typedef {{ role: string, content?: unknown }} Sent a message of a request */
/** @typedef {{ messages: readonly Sent[], tools?: readonly { function: { name: string } }[] }} Body */
/** @typedef {{ url: string, asked(): number, close(): void }} Model */

/** Steps with tools of a turn. */
const TOOL_STEPS = { least: 1, most: 3 }

/** @param {{ witness: string }} place the file that shell commands append to @returns {Promise<Model>} */
export async function startModel({ witness }) {
  let asked = 0
  /** Those that failed once. @type {Set<string>} */
  const failed = new Set()
  const server = createServer(async (request, response) => {
    asked += 1
    response.on('error', () => {
      // Whoever asked was killed.
    })
    const body = /** @type {Body} */ (JSON.parse(await textOf(request).catch(() => 'null')))
    if (body === null) return
    const { task, step } = placeOf(body)
    const key = `${task} ${step}`
    if (numberOf(`fails ${key}`) % 9 === 0 && !failed.has(key)) {
      failed.add(key)
      response.writeHead(503).end('busy')
      return
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const { data, afterMs } of answer({ task, step, tools: toolsOf(body), witness })) {
      if (response.destroyed) return
      if (afterMs > 0) await pause(afterMs)
      response.write(`data: ${data}\n\n`)
    }
    response.end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    asked: () => asked,
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** @param {AsyncIterable<Buffer>} stream */
async function textOf(stream) {
  const parts = []
  for await (const part of stream) parts.push(part)
  return Buffer.concat(parts).toString('utf8')
}

/** @param {Body} body */
const toolsOf = (body) => (body.tools ?? []).map((tool) => tool.function.name)

/** The last task that was set, and how often the model has spoken since. @param {Body} body */
function placeOf({ messages }) {
  const at = messages.findLastIndex(({ role, content }) => role === 'user' && wordsOf(content).startsWith('task '))
  const task = wordsOf(messages[at]?.content).split(' ')[1] ?? 'none'
  const step = messages.slice(at + 1).filter(({ role }) => role === 'assistant').length
  return { task, step }
}

/** @param {unknown} content @returns {string} */
function wordsOf(content) {
  if (typeof content === 'string') return content
  const parts = Array.isArray(content) ? content : []
  return parts.map((part) => String(part?.text ?? '')).join('')
}

/** @param {{ task: string, step: number, tools: readonly string[], witness: string }} about */
function* answer({ task, step, tools, witness }) {
  const number = numberOf(`${task} ${step}`)
  const steps = TOOL_STEPS.least + (numberOf(task) % (TOOL_STEPS.most - TOOL_STEPS.least + 1))
  const calls = step < steps ? callsOf({ task, step, number, tools, witness }) : []
  yield chunk({ role: 'assistant', content: '' }, 30)
  for (let i = 0; i < 4 + (number % 7); i++) yield chunk({ content: `word ${i} of ${task} ` }, 8 + (number % 25))
  for (const [index, { id, name, args }] of calls.entries()) {
    const text = JSON.stringify(args)
    yield chunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }, 6)
    for (const part of [text.slice(0, 9), text.slice(9)]) {
      yield chunk({ tool_calls: [{ index, function: { arguments: part } }] }, 6)
    }
  }
  const finish = calls.length > 0 ? 'tool_calls' : 'stop'
  yield { data: JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: finish }] }), afterMs: 3 }
  yield { data: '[DONE]', afterMs: 0 }
}

/** @param {unknown} delta @param {number} afterMs */
const chunk = (delta, afterMs) => ({ data: JSON.stringify({ choices: [{ index: 0, delta }] }), afterMs })

/**
 * One or two calls of the tools there are; each effect carries a token of its own.
 * @param {{ task: string, step: number, number: number, tools: readonly string[], witness: string }} about
 * @returns {Asked[]}
 */
function callsOf({ task, step, number, tools, witness }) {
  return Array.from({ length: 1 + (number % 2) }, (_, i) => {
    const token = `${task}-${step}-${i}`
    const name = tools[(number + 3 * i) % tools.length] ?? 'none'
    const offered = OFFERED.includes(name) || name.startsWith('effect_') ? name : (OFFERED[number % 3] ?? name)
    return { id: `call_${token}`, name: offered, args: argumentsFor(offered, token, witness) }
  })
}

/** Those of the command line that are asked for. */
const OFFERED = ['run_command', 'read_file', 'list_files']

/** @param {string} name @param {string} token @param {string} witness */
function argumentsFor(name, token, witness) {
  if (name === 'read_file') return { path: 'README.md' }
  if (name === 'list_files') return {}
  if (name !== 'run_command') return { token }
  const line = (/** @type {string} */ what) => `echo '${JSON.stringify({ token, what })}' >> '${witness}'`
  return { command: `${line('began')}; sleep 0.0${1 + (token.length % 8)}; ${line('done')}` }
}
