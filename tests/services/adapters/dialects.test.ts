/** The presets: what each says of a request and of an end, in full. Two whole turns of each are in the tests of the CLI. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { LlmRequest } from '../../../src/log/requests.ts'
import { checkDialect } from '../../../src/services/adapters/chat-completions/dialect-check.ts'
import { chatBody } from '../../../src/services/adapters/chat-completions/serialize.ts'
import { createTranslation } from '../../../src/services/adapters/chat-completions/translate.ts'
import { type DialectName, dialects, serverOf, servers } from '../../../src/services/adapters/dialects.ts'
import { assemblerOf } from '../../../src/services/llm/assembler.ts'

const names = Object.keys(dialects) as readonly DialectName[]

interface Says {
  /** Fields for the effort 'high', and for 'off'. */
  readonly high: object
  readonly off: object
  /** The cap's key; 'max_tokens' by default. */
  readonly cap?: 'max_completion_tokens'
  /** False where usage is not asked for. */
  readonly usage?: false
  readonly more?: object
  /** Its own words for the end, with what they mean to the loop. */
  readonly ends?: Readonly<Record<string, string>>
}

const PLAIN = { high: { reasoning_effort: 'high' }, off: { reasoning_effort: 'off' } }
const THINKING = {
  high: { thinking: { type: 'enabled' }, reasoning_effort: 'high' },
  off: { thinking: { type: 'disabled' } },
}
const SWITCH = { high: { thinking: { type: 'enabled' } }, off: { thinking: { type: 'disabled' } } }
const TEMPLATE = {
  high: { chat_template_kwargs: { enable_thinking: true } },
  off: { chat_template_kwargs: { enable_thinking: false } },
}
const OUT = { insufficient_system_resource: 'SERVER' }

const SAYS: Readonly<Record<DialectName, Says>> = {
  openai: { ...PLAIN, cap: 'max_completion_tokens' },
  deepseek: { ...THINKING, ends: OUT },
  deepseekV3: { ...THINKING, ends: OUT },
  deepseekR1: { ...THINKING, ends: OUT },
  mistral: { ...PLAIN, usage: false, ends: { model_length: 'max-tokens', error: 'SERVER' } },
  groq: { ...PLAIN, cap: 'max_completion_tokens' },
  openrouter: {
    high: { reasoning: { effort: 'high' } },
    off: { reasoning: { enabled: false } },
    ends: { error: 'SERVER' },
  },
  together: { ...PLAIN, ends: { eos: 'stop' } },
  fireworks: PLAIN,
  vllm: { ...TEMPLATE, ends: { abort: 'SERVER', error: 'SERVER' } },
  llamaCpp: { ...TEMPLATE, more: { parallel_tool_calls: true } },
  ollama: PLAIN,
  lmStudio: PLAIN,
  xai: { ...PLAIN, cap: 'max_completion_tokens' },
  qwen: { high: { enable_thinking: true }, off: { enable_thinking: false } },
  moonshot: { ...SWITCH, cap: 'max_completion_tokens' },
  zhipu: {
    ...SWITCH,
    usage: false,
    ends: {
      sensitive: 'CONTENT_FILTER',
      model_context_window_exceeded: 'CONTEXT_WINDOW_EXCEEDED',
      network_error: 'SERVER',
    },
  },
}

const request = (reasoningEffort: string): LlmRequest => ({
  provider: 'p',
  model: 'm',
  messages: [],
  tools: [{ name: 'f', description: '', parameters: {} }],
  maxTokens: 9,
  reasoningEffort,
  sessionId: 's',
})

/** How an answer ends that says `word`. */
function endOf(name: DialectName, word: string): string {
  const translation = createTranslation(dialects[name])
  const delta = { content: 'a' }
  const chunks = translation.take({ choices: [{ index: 0, delta, finish_reason: word }] })
  const { finish } = assemblerOf([...chunks, ...translation.end()])
  return finish === undefined ? '' : 'failure' in finish ? finish.failure.code : finish.kind
}

describe.each(names)('%s', (name) => {
  const { high, off, cap = 'max_tokens', usage = true, more = {}, ends = {} } = SAYS[name]

  test.each([
    ['high', high],
    ['off', off],
  ])('says an effort of %s, a cap and tools its way, and nothing else', (effort, fields) => {
    expect(chatBody(request(effort), dialects[name])).toEqual({
      model: 'm',
      messages: [],
      stream: true,
      tools: [{ type: 'function', function: { name: 'f', description: '', parameters: {} } }],
      [cap]: 9,
      ...(usage && { stream_options: { include_usage: true } }),
      ...more,
      ...fields,
    })
  })

  test('ends in its own words and in those of the wire', () => {
    expect(Object.fromEntries(Object.keys(ends).map((word) => [word, endOf(name, word)]))).toEqual(ends)
    expect(Object.keys(dialects[name].finishWords ?? {})).toEqual(Object.keys(ends))
    expect([endOf(name, 'stop'), endOf(name, 'length')]).toEqual(['stop', 'max-tokens'])
  })

  test('is a dialect that an adapter takes, and that nobody can change', () => {
    expect(checkDialect(dialects[name])).toEqual(dialects[name])
    expect([dialects[name], ...Object.values(dialects[name])].every(Object.isFrozen)).toBe(true)
  })

  test('has an address that is one, and a key where it is a provider’s', () => {
    const { baseURL, key } = serverOf(name) ?? {}
    expect(baseURL === undefined || new URL(baseURL).href.startsWith('http')).toBe(true)
    expect(key === undefined || /^[A-Z]+_API_KEY$/.test(key)).toBe(true)
  })
})

test('names are those of servers, and nothing that an object has anyway', () => {
  expect(Object.keys(servers)).toEqual(names)
  for (const name of ['toString', '__proto__', '', 'OPENAI']) expect(serverOf(name)).toBe(undefined)
})

describe('docs/dialects.md', () => {
  const page = readFileSync('docs/dialects.md', 'utf8')
  const rows = (heading: string) =>
    (page.split(`## ${heading}\n`)[1]?.split('\n## ')[0] ?? '')
      .split('\n')
      .filter((line) => line.startsWith('| `'))
      .map((line) =>
        line
          .split('|')
          .slice(1)
          .map((cell) => cell.replaceAll('`', '').trim()),
      )

  test('lists every preset with its address and its key', () => {
    expect(rows('Presets').map(([name, baseURL, key]) => [name, baseURL, key])).toEqual(
      names.map((name) => [name, serverOf(name)?.baseURL ?? '', serverOf(name)?.key ?? '']),
    )
  })

  test('lists every field', () => {
    const odd: object = { nonsense: true }
    const refusal = () => checkDialect({ ...odd })
    const fields = rows('Fields').map(([field]) => field)
    expect(refusal).toThrow(`is no field: those are ${fields.join(', ')}`)
  })
})
