/**
 * The demo model's rules: from the conversation and the tools at hand to the next thing to do. Pure, so a request that
 * is asked again after a crash is decided the same way.
 */
import type { LlmRequest, ToolSchema } from '../../../log/requests.ts'
import { answerDirectives, answerQuestion, introduce, lacking } from './answer.ts'
import { type Answered, type Conversation, readConversation } from './conversation.ts'
import { type Directive, directives } from './directive.ts'
import { bestFiles, listedFiles, searchHits } from './evidence.ts'
import { salientWords } from './words.ts'

export interface PlannedCall {
  readonly name: string
  readonly args: Readonly<Record<string, string | boolean>>
}

/** `why` is what the model says while it thinks. */
export type Decision =
  | { readonly kind: 'call'; readonly why: string; readonly calls: readonly PlannedCall[] }
  | { readonly kind: 'answer'; readonly why: string; readonly text: string }

/** What to do next. */
export function decide(request: Pick<LlmRequest, 'messages' | 'tools'>): Decision {
  const conversation = readConversation(request.messages)
  const tools = request.tools ?? []
  const orders = directives(conversation.question)
  return orders.length > 0 ? obey(orders, conversation, tools) : look(conversation, tools)
}

/** One directive after another; the first that fails ends it. */
function obey(orders: readonly Directive[], { done }: Conversation, tools: readonly ToolSchema[]): Decision {
  const next = orders[done.length]
  if (next === undefined || done.some((call) => call.isError)) {
    return { kind: 'answer', why: 'The results are in: report them.', text: answerDirectives(orders, done) }
  }
  const call = callFor(next, tools)
  if (call === undefined) {
    return { kind: 'answer', why: 'The tool for this is missing.', text: lacking(TOOL_OF[next.kind], tools) }
  }
  return { kind: 'call', why: `The prompt says what to do: ${next.kind}.`, calls: [call] }
}

const TOOL_OF = { run: 'run_command', write: 'write_file', read: 'read_file' } as const

function callFor(directive: Directive, tools: readonly ToolSchema[]): PlannedCall | undefined {
  const tool = tools.find(({ name }) => name === TOOL_OF[directive.kind])
  if (tool === undefined) return undefined
  switch (directive.kind) {
    case 'run':
      return { name: tool.name, args: { [argument(tool, 'command', 'cmd')]: directive.command } }
    case 'write':
      return {
        name: tool.name,
        args: {
          [argument(tool, 'path', 'file')]: directive.path,
          [argument(tool, 'content', 'text')]: directive.content,
        },
      }
    case 'read':
      return { name: tool.name, args: { [argument(tool, 'path', 'file')]: directive.path } }
  }
}

/** List, search, read, answer; a stage without its tool, or with nothing to do, is skipped. */
function look(conversation: Conversation, tools: readonly ToolSchema[]): Decision {
  const { question, done } = conversation
  const words = salientWords(question)
  const reading = tools.some(({ name }) => name === 'list_files' || name === 'search_text' || name === 'read_file')
  if (words.length === 0 || !reading) {
    const text = words.length === 0 ? introduce(tools) : lacking('list_files, search_text or read_file', tools)
    return { kind: 'answer', why: 'Nothing here to look up.', text }
  }
  return (
    list(done, tools) ??
    search(question, words, done, tools) ??
    read(question, words, done, tools) ?? {
      kind: 'answer',
      why: 'Enough read: quote what answers the question.',
      text: answerQuestion(question, words, done),
    }
  )
}

type Stage = Decision | undefined

function list(done: readonly Answered[], tools: readonly ToolSchema[]): Stage {
  if (done.length > 0) return undefined
  const tool = tools.find(({ name }) => name === 'list_files')
  return tool && { kind: 'call', why: 'List the files first.', calls: [{ name: tool.name, args: {} }] }
}

function search(
  question: string,
  words: readonly string[],
  done: readonly Answered[],
  tools: readonly ToolSchema[],
): Stage {
  const tool = tools.find(({ name }) => name === 'search_text')
  if (!tool || done.some(({ name }) => name !== 'list_files') || isEmptyFolder(done)) return undefined
  const calls = words.map((word) => ({ name: tool.name, args: searchFor(word, { question, tool }) }))
  return { kind: 'call', why: `Search for ${words.join(', ')}.`, calls }
}

/** A name is searched in either case of its first letter; for the rest plain text will do, which is much faster. */
function searchFor(word: string, asked: { question: string; tool: ToolSchema }): PlannedCall['args'] {
  const key = argument(asked.tool, 'query', 'pattern', 'text')
  if (!isName(word, asked.question) || !propertiesOf(asked.tool).includes('regex')) return { [key]: word }
  const [first = '', ...rest] = [...word]
  return { [key]: `[${first.toUpperCase()}${first}]${rest.join('').replaceAll('.', '\\.')}`, regex: true }
}

/** Capital where no sentence begins. */
function isName(word: string, question: string): boolean {
  const at = question.toLowerCase().indexOf(word)
  return at > 0 && /\p{Lu}/u.test(question[at] ?? '') && !/[.!?]\s*$/.test(question.slice(0, at))
}

function read(
  question: string,
  words: readonly string[],
  done: readonly Answered[],
  tools: readonly ToolSchema[],
): Stage {
  const tool = tools.find(({ name }) => name === 'read_file')
  if (!tool || done.some(({ name }) => name === 'read_file')) return undefined
  const files = bestFiles(question, words, {
    files: listedFiles(only(done, 'list_files')),
    hits: searchHits(only(done, 'search_text')),
  })
  if (files.length === 0) return undefined
  const key = argument(tool, 'path', 'file')
  return {
    kind: 'call',
    why: `Read ${files.join(', ')}.`,
    calls: files.map((path) => ({ name: tool.name, args: { [key]: path } })),
  }
}

const isEmptyFolder = (done: readonly Answered[]): boolean =>
  done.some(({ name, isError }) => name === 'list_files' && !isError) &&
  listedFiles(only(done, 'list_files')).length === 0

const only = (done: readonly Answered[], name: string): readonly Answered[] => done.filter((call) => call.name === name)

/** The tool's own name for an argument: the first of `names` its schema has. */
function argument(tool: ToolSchema, ...names: readonly [string, ...string[]]): string {
  const known = propertiesOf(tool)
  return names.find((name) => known.includes(name)) ?? names[0]
}

function propertiesOf(tool: ToolSchema): readonly string[] {
  const properties = tool.parameters.properties
  return typeof properties === 'object' && properties !== null ? Object.keys(properties) : []
}
