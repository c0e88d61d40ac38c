/** Answers: what the model said in its chunks, and nothing else. A block's end is the last word on its deltas. */
import type { EventMap, KnownEvent } from '../events.ts'
import { equalJson, type Json } from '../json.ts'
import type { ContentBlock, StreamChunk, TokenUsage, ToolCallBlock } from '../messages.ts'
import type { Frame, Report, TopicOf } from './topic.ts'

/** What an attempt has said so far. Blocks stand in the order in which their indexes first came. */
interface Said {
  readonly key: string
  readonly blocks: Map<number, Block>
  usage: TokenUsage | undefined
}

interface Block {
  readonly type: string
  /** Of deltas of its type: its text, or a call's arguments. */
  said: string
  id: string
  name: string
  closed: ContentBlock | undefined
}

const nothingSaid = (key: string): Said => ({ key, blocks: new Map(), usage: undefined })

export const answers: TopicOf = (frame, report) => {
  let said = nothingSaid('')
  const of = (at: { readonly turn: number; readonly step: number; readonly attempt: number }): Said => {
    const key = `${at.turn}/${at.step}/${at.attempt}`
    return said.key === key ? said : nothingSaid(key)
  }
  const used = new Set<string>()

  const checkAnswer = ({ data, sourceEventSeqs }: KnownEvent<'assistant/message'>) => {
    checkModel(frame, report, data)
    // An answer that cites no chunks was put there by other means.
    if (sourceEventSeqs !== undefined) checkSaid(report, data, of(data), used)
    for (const { callId } of data.calls) used.add(callId)
  }

  return {
    check(event) {
      if (event.type === 'assistant/chunk') {
        said = of(event.data)
        take(said, event.data.chunk)
      } else if (event.type === 'assistant/message') checkAnswer(event)
    },
  }
}

function take(said: Said, chunk: StreamChunk): void {
  if (chunk.type === 'usage') said.usage = chunk.usage
  if (!('index' in chunk)) return
  const block = said.blocks.get(chunk.index) ?? { type: typeOf(chunk), said: '', id: '', name: '', closed: undefined }
  said.blocks.set(chunk.index, block)
  if (chunk.type === 'block-end') block.closed ??= chunk.block
  else if (chunk.type === `${block.type}-delta`) addTo(block, chunk)
}

type Delta = Extract<StreamChunk, { readonly type: `${string}-delta` }>

/** A stream out of order opens a block with whatever comes first. */
function typeOf(chunk: Extract<StreamChunk, { readonly index: number }>): string {
  if (chunk.type === 'block-start') return chunk.blockType
  return chunk.type === 'block-end' ? chunk.block.type : chunk.type.replace(/-delta$/, '')
}

function addTo(block: Block, chunk: Delta | Extract<StreamChunk, { readonly type: 'block-start' }>): void {
  if (chunk.type === 'block-start') return
  if (chunk.type !== 'tool-call-delta') {
    block.said += chunk.text
    return
  }
  block.said += chunk.argumentsDelta
  block.id = chunk.id || block.id
  block.name = chunk.name || block.name
}

/** A block's own last word, or what its deltas come to. */
function blockOf({ type, said, id, name, closed }: Block): ContentBlock {
  if (closed) return closed
  if (type === 'tool-call') return { type, id, name, arguments: said }
  return { type: type === 'reasoning' ? type : 'text', text: said }
}

function checkModel(frame: Frame, report: Report, { message }: EventMap['assistant/message']): void {
  const asked = frame.attempts.current()?.header?.config
  const { provider, model } = message.source
  if (asked && (asked.provider !== provider || asked.model !== model))
    report('ANSWER-SAID', `it is said to be of ${provider} ${model}, and ${asked.provider} ${asked.model} was asked`)
}

type Answer = EventMap['assistant/message']

function checkSaid(report: Report, data: Answer, said: Said, used: ReadonlySet<string>): void {
  const { content } = data.message
  const expected = data.interrupted ? seenOf(said) : kept(said, data.finish.kind === 'max-tokens')
  const here = new Set<string>()
  const isUsed = (id: string) => used.has(id) || here.has(id)
  const isNext = (block: ContentBlock, i: number): boolean => {
    const fits = isSame(block, expected[i], isUsed)
    if (block.type === 'tool-call') here.add((block as ToolCallBlock).id)
    return fits
  }
  const isSaid = content.length === expected.length && content.every(isNext)
  if (!isSaid) report('ANSWER-SAID', `its ${content.length} blocks are not the ${expected.length} of its chunks`)
  if (!equal(data.usage ?? null, said.usage ?? null)) report('ANSWER-SAID', 'its usage is not that of its chunks')
}

/** Words a reader has seen, of an answer that was cut off. */
const seenOf = (said: Said): readonly ContentBlock[] =>
  contentOf(said).filter(
    (block) =>
      (block.type === 'text' || block.type === 'reasoning') && 'text' in block && String(block.text).trim() !== '',
  )

/** An answer cut by the token limit makes none of its calls. */
const kept = (said: Said, isCut: boolean): readonly ContentBlock[] =>
  contentOf(said).filter(({ type }) => !(isCut && type === 'tool-call'))

const contentOf = ({ blocks }: Said): readonly ContentBlock[] => [...blocks.values()].map(blockOf)

/** An id that is missing, too long or used already was minted anew. */
function isSame(block: ContentBlock, said: ContentBlock | undefined, isUsed: (id: string) => boolean): boolean {
  if (said === undefined) return false
  if (equal(block, said)) return true
  if (block.type !== 'tool-call' || said.type !== 'tool-call') return false
  const { id } = said as ToolCallBlock
  return (id === '' || id.length > MAX_ID || isUsed(id)) && equal({ ...block, id }, said)
}

const MAX_ID = 256

/** Parts of events are JSON; their types are interfaces, which TypeScript will not take for it. */
const equal = (a: unknown, b: unknown): boolean => equalJson(a as Json, b as Json)
