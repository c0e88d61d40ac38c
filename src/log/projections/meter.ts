/**
 * What a turn and its session have spent, told by the log alone: tokens of every attempt, also of those that failed,
 * the cost at the prices that were logged, and the time in which something ran. An attempt that told no usage is charged
 * by estimate.
 */
import { type EventMap, type Price, type SessionEvent, SURFACE } from '../events.ts'
import { utf8Bytes } from '../json.ts'
import type { TokenUsage } from '../messages.ts'

/** `tokens`, ms, and currency units; `estimated` if an attempt that counts told no usage. */
export interface Spent {
  readonly tokens: number
  readonly timeMs: number
  readonly cost: number
  readonly estimated: boolean
}

export interface Meter {
  place(event: SessionEvent): void
  /** As of `now` (epoch ms): the time since the last event counts while something runs. */
  spent(scope: 'turn' | 'session', now: number): Spent
  /** All of it. */
  saved(): SavedMeter
  /** Takes it back, before any event. */
  restore(saved: SavedMeter): void
}

/** A meter as a checkpoint holds it. */
export interface SavedMeter {
  readonly sums: { readonly turn: Spent; readonly session: Spent }
  readonly attempt: { readonly key: string; readonly usage: TokenUsage | null; readonly outputBytes: number } | null
  readonly price: Price
  readonly lastTime: number
  readonly activity: SavedActivity
  readonly conversation: readonly (readonly [seq: number, bytes: number])[]
}

interface SavedActivity {
  readonly open: boolean
  readonly waitsForRetry: boolean
  readonly atWork: readonly string[]
  readonly awaiting: readonly string[]
}

interface Sum {
  tokens: number
  timeMs: number
  cost: number
  estimated: boolean
}

interface Attempt {
  readonly key: string
  usage: TokenUsage | undefined
  outputBytes: number
}

/** A common rule of thumb for text and JSON. */
const BYTES_PER_TOKEN = 4
const FREE: Price = { input: 0, output: 0 }

const zero = (): Sum => ({ tokens: 0, timeMs: 0, cost: 0, estimated: false })

export function createMeter(): Meter {
  let sums = { turn: zero(), session: zero() }
  let activity = createActivity()
  let conversation = createConversation()
  let price = FREE
  let attempt: Attempt | undefined
  let lastTime = 0

  const charge = (to: Sum, { usage, outputBytes }: Attempt): void => {
    const used = usage ?? {
      inputTokens: Math.ceil(conversation.bytes / BYTES_PER_TOKEN),
      outputTokens: Math.ceil(outputBytes / BYTES_PER_TOKEN),
    }
    to.tokens += tokensOf(used)
    to.cost += costOf(used, price)
    to.estimated ||= usage === undefined
  }
  const closeAttempt = (): void => {
    if (attempt === undefined) return
    charge(sums.turn, attempt)
    charge(sums.session, attempt)
    attempt = undefined
  }
  const takeChunk = ({ turn, step, attempt: number, chunk }: EventMap['assistant/chunk']): void => {
    const key = `${turn}.${step}.${number}`
    if (attempt?.key !== key) {
      closeAttempt()
      attempt = { key, usage: undefined, outputBytes: 0 }
    }
    if (chunk.type === 'usage') attempt.usage = chunk.usage
    else if ('text' in chunk) attempt.outputBytes += utf8Bytes(chunk.text)
    else if (chunk.type === 'tool-call-delta') attempt.outputBytes += utf8Bytes(chunk.argumentsDelta)
  }
  const takeTime = (event: SessionEvent): void => {
    // Nothing ran while the process was gone.
    const gone = event.type === 'session/resumed'
    const passed = activity.running && !gone ? Math.max(0, event.time - lastTime) : 0
    sums.turn.timeMs += passed
    sums.session.timeMs += passed
    lastTime = event.time
    activity.place(event)
  }

  return {
    place(event) {
      if (event.type === 'turn/start') sums.turn = zero()
      takeTime(event)
      if (event.type === 'assistant/chunk') return takeChunk(event.data)
      if (ENDS_ATTEMPT.has(event.type)) closeAttempt()
      if (event.type === 'request/context') price = event.data.price ?? FREE
      conversation.place(event)
    },
    spent(scope, now) {
      const sum = { ...sums[scope] }
      if (attempt !== undefined) charge(sum, attempt)
      if (activity.running) sum.timeMs += Math.max(0, now - lastTime)
      return sum
    },
    saved: () => ({
      sums: { turn: { ...sums.turn }, session: { ...sums.session } },
      attempt: attempt === undefined ? null : { ...attempt, usage: attempt.usage ?? null },
      price,
      lastTime,
      activity: activity.saved(),
      conversation: conversation.saved(),
    }),
    restore(saved) {
      sums = { turn: { ...saved.sums.turn }, session: { ...saved.sums.session } }
      activity = createActivity(saved.activity)
      conversation = createConversation(saved.conversation)
      price = saved.price
      attempt = saved.attempt === null ? undefined : { ...saved.attempt, usage: saved.attempt.usage ?? undefined }
      lastTime = saved.lastTime
    },
  }
}

const ENDS_ATTEMPT: ReadonlySet<string> = new Set([
  'assistant/message',
  'llm/retry',
  'step/end',
  'turn/end',
  'session/resumed',
])

const tokensOf = ({ inputTokens, outputTokens, cacheReadTokens = 0, cacheWriteTokens = 0 }: TokenUsage): number =>
  inputTokens + outputTokens + cacheReadTokens + cacheWriteTokens

function costOf(usage: TokenUsage, price: Price): number {
  const { inputTokens, outputTokens, cacheReadTokens = 0, cacheWriteTokens = 0 } = usage
  const read = cacheReadTokens * (price.cacheRead ?? price.input)
  const write = cacheWriteTokens * (price.cacheWrite ?? price.input)
  return (inputTokens * price.input + outputTokens * price.output + read + write) / 1_000_000
}

type Sized = { readonly seq: number; readonly bytes: number }

/** About how many bytes of UTF-8 JSON the conversation has. What is replaced is not sent any more. */
function createConversation(before: SavedMeter['conversation'] = []): {
  readonly bytes: number
  place(event: SessionEvent): void
  saved(): SavedMeter['conversation']
} {
  const nodes: Sized[] = before.map(([seq, bytes]) => ({ seq, bytes }))
  let bytes = nodes.reduce((sum, each) => sum + each.bytes, 0)
  return {
    saved: () => nodes.map((node) => [node.seq, node.bytes] as const),
    get bytes() {
      return bytes
    },
    place(event) {
      if (!SURFACE.has(event.type)) return
      const added = utf8Bytes(JSON.stringify(event.data))
      const [from, count] = replacedBy(event, nodes)
      const gone = nodes.splice(from, count, { seq: event.seq, bytes: added })
      bytes += added - gone.reduce((sum, each) => sum + each.bytes, 0)
    },
  }
}

/** Where the nodes that go begin, and how many. None, behind the last, for a replacement that cannot be as well. */
function replacedBy({ surfaceOp }: SessionEvent, nodes: readonly Sized[]): readonly [from: number, count: number] {
  if (typeof surfaceOp !== 'object') return [nodes.length, 0]
  const first = nodes.findIndex(({ seq }) => seq === surfaceOp.start)
  const last = nodes.findIndex(({ seq }) => seq === surfaceOp.end)
  return first < 0 || last < first ? [nodes.length, 0] : [first, last - first + 1]
}

const IDLE: SavedActivity = { open: false, waitsForRetry: false, atWork: [], awaiting: [] }

/** Whether something of the open turn runs: a retry's wait and a wait for approval alone do not count. */
function createActivity(before: SavedActivity = IDLE): {
  readonly running: boolean
  place(event: SessionEvent): void
  saved(): SavedActivity
} {
  const atWork = new Set(before.atWork)
  const awaiting = new Set(before.awaiting)
  let { open, waitsForRetry } = before
  const settle = (callId: string): void => {
    atWork.delete(callId)
    awaiting.delete(callId)
  }
  return {
    saved: () => ({ open, waitsForRetry, atWork: [...atWork], awaiting: [...awaiting] }),
    get running() {
      return open && !waitsForRetry && (awaiting.size === 0 || atWork.size > 0)
    },
    place(event) {
      switch (event.type) {
        case 'turn/start':
          open = true
          return
        case 'turn/end':
          open = false
          return
        case 'llm/retry':
          waitsForRetry = true
          return
        case 'llm/retry-started':
          waitsForRetry = false
          return
        case 'tool/call':
        case 'tool/dispatch':
          settle(event.data.callId)
          atWork.add(event.data.callId)
          return
        case 'tool/approval-requested':
          settle(event.data.callId)
          awaiting.add(event.data.callId)
          return
        case 'tool/result':
          return settle(event.data.message.source.callId)
        case 'step/end':
          waitsForRetry = false
          atWork.clear()
          awaiting.clear()
          return
        default:
          return
      }
    },
  }
}
