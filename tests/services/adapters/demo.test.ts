import { describe, expect, test } from 'vitest'
import type { Message, StreamChunk, ToolCallBlock, UserMessage } from '../../../src/log/messages.ts'
import { textOf } from '../../../src/log/messages.ts'
import type { LlmRequest, ToolSchema } from '../../../src/log/requests.ts'
import { salientWords, singular, wordsIn } from '../../../src/services/adapters/demo/words.ts'
import { DEMO_LABEL, deltas, demo } from '../../../src/services/adapters/demo.ts'

const schema = (name: string, ...keys: string[]): ToolSchema => ({
  name,
  description: name,
  parameters: { type: 'object', properties: Object.fromEntries(keys.map((key) => [key, { type: 'string' }])) },
})
const FILE_TOOLS = [schema('list_files', 'path'), schema('search_text', 'query'), schema('read_file', 'path')]
const ALL_TOOLS = [...FILE_TOOLS, schema('write_file', 'path', 'content'), schema('run_command', 'command')]

const FILES: Readonly<Record<string, string>> = {
  'README.md': '# Ratchet\n\nA small library for one-way doors.\n\n## Tests\n\nRun `npm test`.\n',
  'package.json': '{\n  "name": "ratchet",\n  "scripts": {\n    "test": "vitest run"\n  }\n}\n',
  'src/door.ts': 'export const door = 1\n// opens one way\n',
}

type Result = { readonly text: string; readonly isError?: boolean }
type World = (name: string, args: Record<string, string>) => Result

const over =
  (files: Readonly<Record<string, string>>): World =>
  (name, args) => {
    if (name === 'list_files') return { text: Object.keys(files).join('\n') }
    if (name === 'search_text') return { text: hits(files, args.query ?? '') }
    const text = files[args.path ?? '']
    return text === undefined ? { text: `no such file: ${args.path}`, isError: true } : { text }
  }

const hits = (files: Readonly<Record<string, string>>, query: string): string =>
  Object.entries(files)
    .flatMap(([path, text]) => text.split('\n').map((line, i) => ({ path, line, at: i + 1 })))
    .filter(({ line }) => line.toLowerCase().includes(query))
    .map(({ path, line, at }) => `${path}:${at}: ${line}`)
    .join('\n')

const asked = (text: string, id = 'q1'): UserMessage => ({
  id,
  role: 'user',
  content: [{ type: 'text', text }],
  source: { kind: 'user' },
})

const request = (messages: readonly Message[], tools: readonly ToolSchema[] = ALL_TOOLS): LlmRequest => ({
  provider: 'pawl',
  model: 'demo',
  messages,
  tools,
  sessionId: 's',
})

async function stream(of: LlmRequest, signal = new AbortController().signal): Promise<StreamChunk[]> {
  const chunks: StreamChunk[] = []
  for await (const chunk of demo().stream(of, { signal })) chunks.push(chunk)
  return chunks
}

const callsOf = (chunks: readonly StreamChunk[]): ToolCallBlock[] =>
  chunks.flatMap((chunk) => (chunk.type === 'block-end' && isCall(chunk.block) ? [chunk.block] : []))
const isCall = (block: { readonly type: string }): block is ToolCallBlock => block.type === 'tool-call'
const answerOf = (chunks: readonly StreamChunk[]): string =>
  chunks.flatMap((chunk) => (chunk.type === 'text-delta' ? [chunk.text] : [])).join('')

interface Run {
  readonly steps: readonly (readonly string[])[]
  readonly answer: string
  readonly messages: readonly Message[]
}

/** Lets the model talk to a world until it answers; each step is the calls it made, as `name value`. */
async function converse(messages: readonly Message[], world: World, tools = ALL_TOOLS): Promise<Run> {
  const steps: string[][] = []
  let all = messages
  for (let step = 0; step < 10; step++) {
    const chunks = await stream(request(all, tools))
    const calls = callsOf(chunks)
    if (calls.length === 0) return { steps, answer: answerOf(chunks), messages: all }
    steps.push(calls.map((call) => [call.name, ...Object.values(JSON.parse(call.arguments))].join(' ')))
    const answer: Message = {
      id: `a${all.length}`,
      role: 'assistant',
      content: calls,
      source: { kind: 'model', provider: 'pawl', model: 'demo' },
    }
    all = [...all, answer, ...calls.map((call) => resultOf(call, world))]
  }
  throw new Error('the model never answered')
}

function resultOf(call: ToolCallBlock, world: World): Message {
  const { text, isError = false } = world(call.name, JSON.parse(call.arguments))
  return {
    id: `r-${call.id}`,
    role: 'user',
    content: [{ type: 'tool-result', toolCallId: call.id, content: [{ type: 'text', text }], isError }],
    source: { kind: 'tool', callId: call.id },
  }
}

describe('a question about the files', () => {
  const question = 'What is this project, and how do I run its tests?'

  test('is answered by listing, searching for its words, reading the best files and quoting them', async () => {
    const { steps, answer } = await converse([asked(question)], over(FILES))
    expect(steps).toEqual([
      ['list_files'],
      ['search_text project', 'search_text run', 'search_text test'],
      ['read_file README.md', 'read_file package.json'],
    ])
    expect(answer).toContain('README.md:1  # Ratchet')
    expect(answer).toContain('README.md:3  A small library for one-way doors.')
    expect(answer).toContain('README.md:7  Run `npm test`.')
    expect(answer).toContain('package.json:4  "test": "vitest run"')
    expect(answer).toContain('3 files')
  })

  test('reads what is told of a thing before what tests it', async () => {
    const files = { 'src/door.test.ts': 'door door\ndoor\ndoor', 'src/door.ts': 'door', 'package-lock.json': 'door' }
    const { steps } = await converse([asked('door?')], over(files))
    expect(steps[2]).toEqual(['read_file src/door.ts', 'read_file src/door.test.ts', 'read_file package-lock.json'])
  })

  test('names what it could not find', async () => {
    const { answer } = await converse([asked('Where are doors and elephants?')], over(FILES))
    expect(answer).toContain('src/door.ts:1  export const door = 1')
    expect(answer).toContain('I found nothing to quote about "elephant".')
  })

  test('about nothing that is there says so and reads nothing', async () => {
    const { steps, answer } = await converse([asked('elephants?')], over(FILES))
    expect(steps).toEqual([['list_files'], ['search_text elephant']])
    expect(answer).toContain('I found nothing about "elephant".')
  })

  test('in an empty folder ends with the listing', async () => {
    const { steps, answer } = await converse([asked(question)], over({}))
    expect(steps).toEqual([['list_files']])
    expect(answer).toContain('The folder has no files I can see.')
  })

  test('searches for a name in either case of its first letter, where the tool takes expressions', async () => {
    const search = [schema('search_text', 'query', 'regex')]
    const { steps } = await converse([asked('Doors? Open the Door of Ratchet')], over(FILES), search)
    expect(steps).toEqual([['search_text door', 'search_text open', 'search_text [Rr]atchet true']])
    expect((await converse([asked('the Ratchet?')], over(FILES))).steps[1]).toEqual(['search_text ratchet'])
  })

  test('quotes no remark a tool makes about its answer, and lists none as a file', async () => {
    const remarks: World = (name, args) => {
      if (name === 'list_files') return { text: 'src/door.ts\n[1 files shown, there are more doors]' }
      if (name === 'read_file') return { text: 'a door\n[lines 1-1 of 9; the door is cut here]' }
      return over(FILES)(name, args)
    }
    const { answer } = await converse([asked('door?')], remarks)
    expect(answer).toContain('src/door.ts:1  a door')
    expect(answer).toContain('in 1 file ')
    expect(answer).not.toContain('[')
  })

  test('goes on with the search when the listing fails', async () => {
    const broken: World = (name, args) =>
      name === 'list_files' ? { text: 'EACCES', isError: true } : over(FILES)(name, args)
    const { steps, answer } = await converse([asked('door?')], broken)
    expect(steps.flat()).toContain('read_file src/door.ts')
    expect(answer).toContain('list_files did not succeed: EACCES')
  })

  test('quotes the search where reading was denied, and says that it was', async () => {
    const denied: World = (name, args) =>
      name === 'read_file' ? { text: 'denied by the user', isError: true } : over(FILES)(name, args)
    const { answer } = await converse([asked('door?')], denied)
    expect(answer).toContain('src/door.ts:1  export const door = 1')
    expect(answer).toContain('read_file src/door.ts did not succeed: denied by the user')
  })

  test('is answered with the tools that are there', async () => {
    const { steps } = await converse([asked('door?')], over(FILES), [schema('search_text', 'query')])
    expect(steps).toEqual([['search_text door']])
    const { answer } = await converse([asked('door?')], over(FILES), [schema('run_command', 'command')])
    expect(answer).toContain('not among my tools (run_command)')
  })

  test('starts over for the next question of the conversation, with new call ids', async () => {
    const first = await converse([asked(question)], over(FILES))
    const second = await converse([...first.messages, asked('door?', 'q2')], over(FILES))
    expect(second.steps[0]).toEqual(['list_files'])
    const ids = second.messages.flatMap((m) => (m.source.kind === 'tool' ? [m.source.callId] : []))
    expect(new Set(ids).size).toBe(ids.length)
  })

  test('takes the runtime context for no question', async () => {
    const context: Message = { ...asked('Today is Monday.', 'ctx'), source: { kind: 'plugin', plugin: 'clock' } }
    const { steps } = await converse([asked('door?'), context], over(FILES))
    expect(steps[1]).toEqual(['search_text door'])
  })
})

describe('a prompt that says what to do', () => {
  const works: World = () => ({ text: 'exit code 0\nhello' })

  test('runs the command it gives', async () => {
    const { steps, answer } = await converse([asked('run: npm test')], works)
    expect(steps).toEqual([['run_command npm test']])
    expect(answer).toContain('run: npm test is done:\n  exit code 0\n  hello')
  })

  test('writes the file it gives', async () => {
    const { steps } = await converse([asked('write notes.txt: hello')], works)
    expect(steps).toEqual([['write_file notes.txt hello']])
  })

  test('is followed line by line', async () => {
    const { steps } = await converse([asked('write a.txt: one\ntwo\nread a.txt\nrun: cat a.txt')], works)
    expect(steps).toEqual([['write_file a.txt one\ntwo'], ['read_file a.txt'], ['run_command cat a.txt']])
  })

  test('stops at what failed, and does not try it again', async () => {
    const denies: World = () => ({ text: 'denied: not today', isError: true })
    const { steps, answer } = await converse([asked('run: a\nrun: b')], denies)
    expect(steps).toEqual([['run_command a']])
    expect(answer).toContain('run: a did not succeed:\n  denied: not today')
    expect(answer).toContain('run: b was not tried.')
  })

  test('needs its tool', async () => {
    const { answer } = await converse([asked('run: a')], works, FILE_TOOLS)
    expect(answer).toContain('I would need run_command for that')
  })

  test('shows the head of a long output', async () => {
    const long: World = () => ({ text: Array.from({ length: 30 }, (_, i) => `line ${i}`).join('\n') })
    const { answer } = await converse([asked('run: a')], long)
    expect(answer).toContain('line 11\n  (18 more lines)')
  })
})

describe('its stream', () => {
  test('a greeting is answered without a tool', async () => {
    const { steps, answer } = await converse([asked('hello')], over(FILES))
    expect(steps).toEqual([])
    expect(answer).toContain('Hello.')
  })

  test('a request without messages or tools is answered, too', async () => {
    expect(answerOf(await stream(request([], [])))).toContain('There are no tools here')
  })

  test('every answer says what is speaking', async () => {
    for (const prompt of ['hello', 'door?', 'run: a', 'elephants?']) {
      const { answer } = await converse([asked(prompt)], over(FILES))
      expect(answer.startsWith(`(${DEMO_LABEL})`)).toBe(true)
    }
  })

  test('the same request is answered the same way again', async () => {
    const { messages } = await converse([asked('door?')], over(FILES))
    for (let end = 1; end <= messages.length; end++) {
      const one = request(messages.slice(0, end))
      expect(await stream(one)).toEqual(await stream(one))
    }
  })

  test('thinks, says or calls, counts, and finishes, in this order', async () => {
    const kinds = (chunks: readonly StreamChunk[]) => [...new Set(chunks.map(({ type }) => type))]
    expect(kinds(await stream(request([asked('door?')])))).toEqual([
      'block-start',
      'reasoning-delta',
      'block-end',
      'tool-call-delta',
      'usage',
      'finish',
    ])
    const answer = await stream(request([asked('hello')]))
    expect(answer.at(-1)).toEqual({ type: 'finish', reason: { kind: 'stop' } })
    const usage = answer.find((chunk) => chunk.type === 'usage')
    expect(usage?.usage.inputTokens).toBeGreaterThan(0)
    expect(usage?.usage.outputTokens).toBeGreaterThan(0)
  })

  test('text comes in small pieces that add up to it', async () => {
    const said = `A line that is longer than one delta, with a word: ${'x'.repeat(60)}\n😀 end`
    expect(deltas(said).join('')).toBe(said)
    expect(Math.max(...deltas(said).map((piece) => [...piece].length))).toBeLessThanOrEqual(24)
    expect(deltas('')).toEqual([])
  })

  test('an aborted signal ends it without a finish', async () => {
    const aborted = new AbortController()
    const chunks: StreamChunk[] = []
    for await (const chunk of demo().stream(request([asked('hello')]), { signal: aborted.signal })) {
      chunks.push(chunk)
      if (chunks.length === 3) aborted.abort()
    }
    expect(chunks).toHaveLength(3)
  })

  test('what was said is whole text of its block', async () => {
    const chunks = await stream(request([asked('hello')]))
    const block = chunks.flatMap((c) =>
      c.type === 'block-end' && c.block.type === 'text' ? [textOf({ content: [c.block] })] : [],
    )
    expect(block).toEqual([answerOf(chunks)])
  })
})

describe('the words of a question', () => {
  test('leave out what every question has, and the plural', () => {
    expect(salientWords('What are the stories about classes, and how do the boxes pass?')).toEqual([
      'story',
      'class',
      'box',
      'pass',
    ])
  })

  test.each([
    ['run the tests', ['run', 'test']],
    ['running, tested; tester', ['run', 'test']],
    ['runTests() and RUN_TEST', ['run', 'test']],
    ['stories', ['story']],
    ['a story', ['story']],
    ['runtime, trunk, latest, history', []],
  ])('stand in "%s" in their forms, and not inside of others', (line, found) => {
    expect(wordsIn(line, ['run', 'test', 'story'])).toEqual(found)
  })

  test('come once each, and not too many', () => {
    expect(salientWords('test tests TEST')).toEqual(['test'])
    expect(salientWords('one two three four five six seven')).toHaveLength(5)
  })

  test.each([
    ['tests', 'test'],
    ['status', 'status'],
    ['analysis', 'analysis'],
    ['bus', 'bus'],
    ['matches', 'match'],
    ['gas', 'gas'],
  ])('%s is searched as %s', (plural, stem) => {
    expect(singular(plural)).toBe(stem)
  })
})
