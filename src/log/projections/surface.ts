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

/** One event that stands on a surface, as much of it as a surface needs. */
export type SurfaceNode = { readonly [T in SurfaceType]: Pick<KnownEvent<T>, 'type' | 'seq' | 'data'> }[SurfaceType]

type Candidate = NewEvent | SessionEvent

export interface Surface {
  /**
   * @throws InvalidEvent if the event is a replacement that cannot be, or would part a call from its result; other
   * events always pass.
   */
  check(event: Candidate): void
  /**
   * Takes the next event of the log; those that have no place here change nothing. @throws InvalidEvent for a
   * replacement that cannot be, unchanged then.
   */
  place(event: SessionEvent): void
  /** The seqs of the events that stand here, in their order. */
  nodes(): readonly number[]
  /** The history a model is shown. Frozen, and the same array until something changes; a snapshot never grows. */
  messages(): readonly Message[]
  /** All that stands here: a surface made of it goes on as this one does. */
  standing(): readonly SurfaceNode[]
}

/**
 * An empty surface, to be fed a log from its first event on; or one on which `standing` stands, to be fed what comes after.
 * That is asked for when somebody wants to know, and nothing may change in it then.
 */
export const createSurface = (standing?: () => readonly SurfaceNode[]): Surface => new GrowingSurface(standing)

/** A class, because an agent has one of each and a thousand agents share their methods. */
class GrowingSurface implements Surface {
  /** What stood here before; undefined once it was looked at. */
  #before: (() => readonly SurfaceNode[]) | undefined
  /** What came since, while nobody has looked. */
  #waiting: SurfaceNode[] = []
  #nodes: SurfaceNode[] = []
  #messages: Message[] = []
  /** Results of the latest answer. */
  #batch: Batch = NO_BATCH
  #snapshot: readonly Message[] | undefined
  /** Shared by the snapshots that only grew from one another; made with the first of them. */
  #lineage: object | undefined

  constructor(standing: (() => readonly SurfaceNode[]) | undefined) {
    this.#before = standing
  }

  check(event: Candidate): void {
    const op = replacement(event)
    if (!op) return
    this.#look()
    const shadowed = checkReplace(this.#nodes, event as NewEvent<SurfaceType>, op)
    if (event.type !== 'tool/result') checkWhole(event, shadowed)
  }

  place(event: SessionEvent): void {
    if (!isNode(event)) return
    const op = replacement(event)
    if (op) this.#replace(event, op)
    else if (this.#before === undefined) this.#append(event)
    else this.#waiting.push(event)
    this.#snapshot = undefined
  }

  nodes(): readonly number[] {
    this.#look()
    return this.#nodes.map((node) => node.seq)
  }

  messages(): readonly Message[] {
    if (this.#snapshot) return this.#snapshot
    this.#look()
    this.#snapshot = Object.freeze(this.#messages.slice())
    this.#lineage ??= {}
    lineages.set(this.#snapshot, this.#lineage)
    return this.#snapshot
  }

  standing(): readonly SurfaceNode[] {
    this.#look()
    return this.#nodes.slice()
  }

  #look(): void {
    if (this.#before === undefined) return
    const standing = this.#before()
    const waiting = this.#waiting
    this.#before = undefined
    this.#waiting = []
    for (const node of standing) this.#append(node)
    for (const node of waiting) this.#append(node)
  }

  #append(node: SurfaceNode): void {
    this.#nodes.push(node)
    if (!this.#add(node)) this.#lineage = undefined
  }

  #replace(node: Node, op: Range): void {
    this.#look()
    checkReplace(this.#nodes, node, op)
    const [first, last] = rangeOf(this.#nodes, node, op)
    this.#nodes.splice(first, last - first + 1, node)
    this.#messages = []
    this.#batch = NO_BATCH
    this.#lineage = undefined
    for (const each of this.#nodes) this.#add(each)
  }

  /** Whether what was there stayed in its place. */
  #add(node: SurfaceNode): boolean {
    if (node.type === 'tool/result') return this.#addResult(node.data.message)
    if (node.type === 'user/message') this.#messages.push(node.data)
    else this.#addAnswer(node.data.message)
    return true
  }

  #addAnswer(message: AssistantMessage): void {
    if (message.content.length > 0) this.#messages.push(message)
    const order = callIds(message)
    this.#batch = order.length === 0 ? NO_BATCH : { start: this.#messages.length, order, placed: [] }
  }

  #addResult(message: ToolResultMessage): boolean {
    const { start, order, placed } = this.#batch
    const rank = order.indexOf(message.source.callId)
    const before = placed.filter((other) => other < rank).length
    const at = start + before
    const stray = rank < 0 || placed.includes(rank)
    if (!stray) placed.splice(before, 0, rank)
    if (stray || at === this.#messages.length) {
      this.#messages.push(message)
      return true
    }
    this.#messages.splice(at, 0, message)
    return false
  }
}

/** Which snapshots only grew from one another: those of one lineage. */
const lineages = new WeakMap<readonly Message[], object>()

/** `messages` begins with all of `prefix`. Two snapshots of one surface between which it only grew are not compared. */
export function beginsWith(messages: readonly Message[], prefix: readonly Message[]): boolean {
  if (messages.length < prefix.length) return false
  const lineage = lineages.get(prefix)
  if (lineage !== undefined && lineages.get(messages) === lineage) return true
  for (let i = 0; i < prefix.length; i++) if (messages[i] !== prefix[i]) return false
  return true
}

type Range = Exclude<SurfaceOp, 'append'>

const isNode = (event: SessionEvent): event is Node =>
  event.type === 'user/message' || event.type === 'assistant/message' || event.type === 'tool/result'

const replacement = (event: Candidate): Range | undefined =>
  typeof event.surfaceOp === 'object' ? event.surfaceOp : undefined

/** Positions of the first and the last node to go. Order is that of the surface: `start` may be the greater number. */
function rangeOf(nodes: readonly SurfaceNode[], event: Candidate, op: Range): readonly [number, number] {
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

/** @returns the nodes that go. */
function checkReplace(nodes: readonly SurfaceNode[], event: NewEvent<SurfaceType>, op: Range): readonly SurfaceNode[] {
  const [first, last] = rangeOf(nodes, event, op)
  const shadowed = nodes.slice(first, last + 1)
  const sources = new Set(event.sourceEventSeqs)
  const uncited = shadowed.find((node) => !sources.has(node.seq))
  if (uncited) throw new InvalidEvent(`${event.type}: it replaces seq ${uncited.seq}, which its sources do not name`)
  if (event.type === 'tool/result') checkRewrite(shadowed, event)
  return shadowed
}

/** Providers refuse a call without its result, and a result without its call: both go, or both stay. */
function checkWhole({ type }: Candidate, shadowed: readonly SurfaceNode[]): void {
  const asked = new Set(
    shadowed.flatMap((node) => (node.type === 'assistant/message' ? callIds(node.data.message) : [])),
  )
  const answered = new Set(
    shadowed.flatMap((node) => (node.type === 'tool/result' ? [node.data.message.source.callId] : [])),
  )
  const parted = [...asked, ...answered].find((id) => !asked.has(id) || !answered.has(id))
  if (parted === undefined) return
  throw new InvalidEvent(`${type}: it would part call ${parted} from its result: replace both, or neither`)
}

function checkRewrite(shadowed: readonly SurfaceNode[], event: NewEvent<'tool/result'>): void {
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

/** An answer without calls; never written to, since no result has a rank in it. */
const NO_BATCH: Batch = { start: 0, order: [], placed: [] }

/** The ids of the calls a model asked for, in its order. */
export const callIds = (message: AssistantMessage): readonly string[] =>
  message.content.filter((block): block is ToolCallBlock => block.type === 'tool-call').map((block) => block.id)
