/**
 * The conversation: the messages and results that stand in it, in order, and the history derived from them. It grows
 * with the log; only a replacement makes it walk its nodes again. Results stand in the model's call order right
 * after their answer, whatever order they were recorded in.
 */
import { InvalidEvent } from '../errors.ts'
import type { KnownEvent, NewEvent, SessionEvent, SurfaceOp } from '../events.ts'
import { equalJson } from '../json.ts'
import type { AssistantMessage, Message, ToolCallBlock, ToolResultMessage } from '../messages.ts'

type SurfaceType = 'user/message' | 'assistant/message' | 'tool/result'
type Node = KnownEvent<SurfaceType>
type Candidate = NewEvent | SessionEvent

export interface Surface {
  /** @throws InvalidEvent if the event is a replacement that cannot be; other events always pass. */
  check(event: Candidate): void
  /** Takes the next event of the log; those that have no place here change nothing. @throws as `check`, unchanged then. */
  place(event: SessionEvent): void
  /** The seqs of the events that stand here, in their order. */
  nodes(): readonly number[]
  /** The history a model is shown. Frozen, and the same array until something changes; a snapshot never grows. */
  messages(): readonly Message[]
}

/** An empty surface. Feed it a log from its first event on. */
export function createSurface(): Surface {
  const nodes: Node[] = []
  let history = createHistory()
  let snapshot: readonly Message[] | undefined

  const check = (event: Candidate) => {
    const op = replacement(event)
    if (op) checkReplace(nodes, event as NewEvent<SurfaceType>, op)
  }
  const replace = (node: Node, op: Range) => {
    checkReplace(nodes, node, op)
    const [first, last] = rangeOf(nodes, node, op)
    nodes.splice(first, last - first + 1, node)
    history = createHistory()
    for (const each of nodes) history.add(each)
  }

  return {
    check,
    place(event) {
      if (!isNode(event)) return
      const op = replacement(event)
      if (op) replace(event, op)
      else {
        nodes.push(event)
        history.add(event)
      }
      snapshot = undefined
    },
    nodes: () => nodes.map((node) => node.seq),
    messages() {
      snapshot ??= Object.freeze(history.messages.slice())
      return snapshot
    },
  }
}

type Range = Exclude<SurfaceOp, 'append'>

const isNode = (event: SessionEvent): event is Node =>
  event.type === 'user/message' || event.type === 'assistant/message' || event.type === 'tool/result'

const replacement = (event: Candidate): Range | undefined =>
  typeof event.surfaceOp === 'object' ? event.surfaceOp : undefined

/** Positions of the first and the last node to go. Order is that of the surface: `start` may be the greater number. */
function rangeOf(nodes: readonly Node[], event: Candidate, op: Range): readonly [number, number] {
  const first = nodes.findIndex((node) => node.seq === op.start)
  const last = nodes.findIndex((node) => node.seq === op.end)
  if (first < 0 || last < 0) {
    throw new InvalidEvent(
      `${event.type}: cannot replace seq ${first < 0 ? op.start : op.end}: it is not on the surface`,
    )
  }
  if (first > last) throw new InvalidEvent(`${event.type}: cannot replace: seq ${op.start} stands after seq ${op.end}`)
  return [first, last]
}

function checkReplace(nodes: readonly Node[], event: NewEvent<SurfaceType>, op: Range): void {
  const [first, last] = rangeOf(nodes, event, op)
  const shadowed = nodes.slice(first, last + 1)
  const sources = new Set(event.sourceEventSeqs)
  const uncited = shadowed.find((node) => !sources.has(node.seq))
  if (uncited) throw new InvalidEvent(`${event.type}: it replaces seq ${uncited.seq}, which its sources do not name`)
  if (event.type === 'tool/result') checkRewrite(shadowed, event)
}

function checkRewrite(shadowed: readonly Node[], event: NewEvent<'tool/result'>): void {
  const [old] = shadowed
  if (shadowed.length !== 1 || old?.type !== 'tool/result') {
    throw new InvalidEvent('tool/result: it may replace exactly one tool/result, and nothing else')
  }
  if (!equalJson(identity(old.data), identity(event.data))) {
    throw new InvalidEvent('tool/result: a replacement may change what the result says, and nothing else')
  }
}

/** A result without what it says. */
function identity(data: NewEvent<'tool/result'>['data']) {
  const [block] = data.message.content
  return { ...data, message: { ...data.message, content: [{ ...block, content: [] }] } }
}

/** Results of the latest answer: where the first of them stands, and the order the model asked in. */
interface Batch {
  readonly start: number
  readonly order: readonly string[]
  /** Positions in `order` of those that are here, ascending. */
  readonly placed: number[]
}

function createHistory() {
  const messages: Message[] = []
  let batch: Batch = { start: 0, order: [], placed: [] }

  const addAnswer = (message: AssistantMessage) => {
    if (message.content.length > 0) messages.push(message)
    batch = { start: messages.length, order: callIds(message), placed: [] }
  }
  const addResult = (message: ToolResultMessage) => {
    const rank = batch.order.indexOf(message.source.callId)
    if (rank < 0 || batch.placed.includes(rank)) return messages.push(message)
    const before = batch.placed.filter((other) => other < rank).length
    batch.placed.splice(before, 0, rank)
    return messages.splice(batch.start + before, 0, message)
  }
  return {
    messages,
    add(node: Node) {
      if (node.type === 'user/message') messages.push(node.data)
      else if (node.type === 'assistant/message') addAnswer(node.data.message)
      else addResult(node.data.message)
    },
  }
}

/** The ids of the calls a model asked for, in its order. */
export const callIds = (message: AssistantMessage): readonly string[] =>
  message.content.filter((block): block is ToolCallBlock => block.type === 'tool-call').map((block) => block.id)
