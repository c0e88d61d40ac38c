/** The model of a path: it says nothing until it is told what. An aborted request ends by itself. */
import type { StreamChunk } from '../../log/messages.ts'
import type { AgentContext } from '../../machines/evolve.ts'
import type { ModelAdapter } from '../../services/llm/adapter.ts'
import type { PathTool } from '../path.ts'
import type { PathInput } from '../path-input.ts'
import { answerText, argumentsOf, TOKENS } from '../stimulus.ts'
import type { Surroundings, Told } from './surroundings.ts'

export interface PathModelOptions {
  readonly surroundings: Surroundings
  readonly tools: readonly PathTool[]
  /** The agent's as it is now. */
  context(): AgentContext
}

type Saying = Told<'speaks' | 'answered' | 'request-fails'>

export const createPathModel = (options: PathModelOptions): ModelAdapter => ({
  provider: 'path',
  model: 'path',
  stream: (_, { signal }) => speak(options, signal),
})

async function* speak(options: PathModelOptions, signal: AbortSignal): AsyncGenerator<StreamChunk, void, void> {
  const { surroundings } = options
  const context = options.context()
  const name = `model ${context.turn}.${context.step}.${context.attempt}`
  const text = answerText({ context })
  for (let spoke = false; ; spoke = true) {
    const told = await untilAborted(
      surroundings.ask(name, 'askModel', ['speaks', 'answered', 'request-fails'], spoke),
      signal,
    )
    if (told === undefined) return surroundings.withdraw(name)
    told.observed(told.input)
    yield* wordsOf(options, told.input, { spoke, text })
    if (told.input.type !== 'speaks') return
  }
}

function untilAborted(asked: Promise<Saying>, signal: AbortSignal): Promise<Saying | undefined> {
  if (signal.aborted) return Promise.resolve(undefined)
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => resolve(undefined), { once: true })
    asked.then(resolve, reject)
  })
}

interface Said {
  readonly spoke: boolean
  readonly text: string
}

function wordsOf(options: PathModelOptions, input: Saying['input'], { spoke, text }: Said): readonly StreamChunk[] {
  switch (input.type) {
    case 'speaks':
      return [
        { type: 'block-start', index: 0, blockType: 'text' },
        { type: 'text-delta', index: 0, text: text.slice(0, 6) },
      ]
    case 'request-fails': {
      const failure = { code: input.retryable ? 'SERVER' : 'AUTH', message: 'The path fails here' }
      return [{ type: 'finish', reason: { kind: 'error', failure } }]
    }
    case 'answered':
      return [
        ...(input.calls.length === 0 || spoke ? textChunks(text, spoke) : []),
        ...input.calls.flatMap((call, index) => callChunks(options, call, index + (spoke ? 1 : 0))),
        { type: 'usage', usage: { inputTokens: input.limited ? TOKENS.limited : 1, outputTokens: 1 } },
        { type: 'finish', reason: { kind: input.finish } },
      ]
  }
}

const textChunks = (text: string, spoke: boolean): readonly StreamChunk[] => [
  ...(spoke ? [] : [{ type: 'block-start', index: 0, blockType: 'text' } as const]),
  { type: 'text-delta', index: 0, text: spoke ? text.slice(6) : text },
  { type: 'block-end', index: 0, block: { type: 'text', text } },
]

type Call = Extract<PathInput, { type: 'answered' }>['calls'][number]

function callChunks({ tools }: PathModelOptions, { callId, tool }: Call, index: number): readonly StreamChunk[] {
  const called = tools.find(({ name }) => name === tool)
  if (called === undefined) throw new Error(`The path has no tool "${tool}"`)
  const raw = argumentsOf(called)
  return [
    { type: 'block-start', index, blockType: 'tool-call' },
    { type: 'tool-call-delta', index, id: callId, name: tool, argumentsDelta: raw },
    { type: 'block-end', index, block: { type: 'tool-call', id: callId, name: tool, arguments: raw } },
  ]
}
