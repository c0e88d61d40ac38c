/**
 * A session's folds as bytes, so that the next opening need not read the whole log: a line of JSON with what is short,
 * then three lists, which are parsed when somebody wants to know what is in them. Whoever reads it trusts nothing:
 * anything that is not as it was written here is no checkpoint.
 */
import type { Json } from '../json.ts'
import { equalJson } from '../json.ts'
import type { UserMessage } from '../messages.ts'
import type { SurfaceNode } from '../projections/surface.ts'
import type { SessionHeader } from '../store.ts'
import type { SavedFolds } from './folded.ts'
import type { MessageRecord, SavedRecord } from './standings.ts'

/** What opens from checkpoints and makes them, beside the session itself: whoever folds its log along. */
export interface CheckpointHolder {
  /** The version of the code that folds, and of the chart: a checkpoint by another is passed over. */
  readonly maker: string
  /** What the holder has folded of all that was recorded. Asked for when that is durable, and no macrostep under way. */
  save(): Json
  /** Takes it back, before any event is loaded; false if it cannot, and then nothing has changed. */
  restore(saved: Json): boolean
}

/** What is written here; another number is another layout, and is not read. */
const LAYOUT = 1

/** Whose checkpoint it is. One of another session or maker is none. */
export interface CheckpointPlace {
  readonly header: SessionHeader
  /** The version of the code that folded, and of the chart. */
  readonly maker: string
}

export interface CheckpointContent {
  readonly folds: SavedFolds
  /** What the session's holder folds along. */
  readonly holder: Json
}

interface Lists {
  readonly surface: readonly StoredNode[]
  readonly records: readonly StoredRecord[]
  readonly calls: readonly string[]
}

type StoredNode = readonly [seq: number, type: SurfaceNode['type'], data: unknown]

/** `message`: as it is; or nothing where there is none, or where the surface has the same one at `standing.seq`. */
type StoredRecord = readonly [
  id: string,
  seq: number,
  standing: MessageRecord['standing'],
  message?: UserMessage | null,
]

/** All but the lists. */
interface Line {
  readonly layout: number
  readonly maker: string
  readonly session: string
  readonly createdAt: number
  /** Bytes of each list, in this order. */
  readonly lists: Readonly<Record<keyof Lists, number>>
  readonly folds: Omit<SavedFolds, 'calls' | 'standings' | 'surface'> & {
    readonly scheduled: SavedFolds['calls']['scheduled']
    readonly standings: Omit<SavedFolds['standings'], 'records'>
  }
  readonly holder: Json
}

const LISTS = ['surface', 'records', 'calls'] as const

/** Characters of text after which the event loop gets its turn. */
const SLICE = 262_144

/** The bytes of what was saved, which must not change meanwhile. It takes the event loop's time in slices. */
export async function encodeCheckpoint(
  { header, maker }: CheckpointPlace,
  { folds, holder }: CheckpointContent,
): Promise<Uint8Array> {
  const { calls, standings, surface, ...short } = folds
  const nodes = surface()
  const { records, ...rest } = standings
  const parts = {
    surface: await texts(nodes, storedNode),
    records: await texts(records(), storedRecord(messagesOn(nodes))),
    calls: await texts(calls.used(), (callId) => callId),
  }
  const bytes = LISTS.map((list) => parts[list].reduce((sum, part) => sum + part.byteLength, 0))
  const line: Line = {
    layout: LAYOUT,
    maker,
    session: header.id,
    createdAt: header.createdAt,
    lists: { surface: bytes[0] ?? 0, records: bytes[1] ?? 0, calls: bytes[2] ?? 0 },
    folds: { ...short, scheduled: calls.scheduled, standings: rest },
    holder,
  }
  return Buffer.concat([Buffer.from(`${JSON.stringify(line)}\n`), ...LISTS.flatMap((list) => parts[list])])
}

/** The list as pieces of JSON text. */
async function texts<T>(items: readonly T[], stored: (item: T) => unknown): Promise<readonly Buffer[]> {
  const parts: Buffer[] = []
  let text = '['
  for (const [i, item] of items.entries()) {
    text += `${i === 0 ? '' : ','}${JSON.stringify(stored(item))}`
    if (text.length < SLICE) continue
    parts.push(Buffer.from(text))
    text = ''
    await new Promise<void>((resolve) => setImmediate(resolve))
  }
  parts.push(Buffer.from(`${text}]`))
  return parts
}

const storedNode = ({ seq, type, data }: SurfaceNode): StoredNode => [seq, type, data]

type MessagesOn = ReadonlyMap<number, UserMessage>

const messagesOn = (nodes: readonly SurfaceNode[]): MessagesOn =>
  new Map(nodes.flatMap((node) => (node.type === 'user/message' ? [[node.seq, node.data]] : [])))

/** Most messages stand on the surface, and are not written twice. */
const storedRecord =
  (on: MessagesOn) =>
  ([id, { seq, standing, message }]: SavedRecord): StoredRecord => {
    if (message === undefined) return [id, seq, standing]
    const same = standing.kind === 'entered' ? on.get(standing.seq) : undefined
    return [id, seq, standing, same === message || (same && isSame(same, message)) ? null : message]
  }

const isSame = (one: UserMessage, other: UserMessage): boolean =>
  equalJson(one as unknown as Json, other as unknown as Json)

/**
 * What the checkpoint holds, or undefined if it is not of this session, maker and seq, or not as it was written.
 * The lists are parsed later, and are as sound as the bytes: a store vouches for those.
 */
export function decodeCheckpoint(
  { header, maker }: CheckpointPlace,
  { seq, body }: { readonly seq: number; readonly body: Uint8Array },
): CheckpointContent | undefined {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  const end = bytes.indexOf(0x0a)
  const line = end < 0 ? undefined : parsed(bytes.subarray(0, end))
  if (!isLine(line)) return undefined
  if (line.maker !== maker || line.session !== header.id || line.createdAt !== header.createdAt) return undefined
  if (line.folds.nextSeq !== seq) return undefined
  const { surface, records, calls } = line.lists
  if (end + 1 + surface + records + calls !== bytes.byteLength) return undefined
  return { folds: savedFolds(line, bytes.subarray(end + 1)), holder: line.holder }
}

function savedFolds({ lists, folds }: Line, bytes: Buffer): SavedFolds {
  const { scheduled, standings, ...short } = frozen(folds)
  const toRecords = lists.surface
  const toCalls = toRecords + lists.records
  const surface = once(() => frozen(listOf<StoredNode>(bytes.subarray(0, toRecords))).map(nodeOf))
  const records = once(() => {
    const stored = frozen(listOf<StoredRecord>(bytes.subarray(toRecords, toCalls)))
    const on = messagesOn(surface())
    return stored.map(recordOf(on))
  })
  const used = once(() => listOf<string>(bytes.subarray(toCalls)))
  return { ...short, calls: { scheduled, used }, standings: { ...standings, records }, surface }
}

/** Of what a checkpoint that another version wrote by the same name may have instead, nothing is assumed. */
function isLine(value: unknown): value is Line {
  if (!isObject(value) || value.layout !== LAYOUT || !isObject(value.lists) || !isObject(value.folds)) return false
  const { lists, folds } = value
  return LISTS.every((list) => Number.isSafeInteger(lists[list])) && isObject(folds.standings) && 'holder' in value
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    return undefined // Not JSON: not a checkpoint of ours.
  }
}

const listOf = <T>(bytes: Buffer): readonly T[] => JSON.parse(bytes.toString()) as readonly T[]

const nodeOf = ([seq, type, data]: StoredNode): SurfaceNode => ({ seq, type, data }) as SurfaceNode

const recordOf =
  (on: MessagesOn) =>
  ([id, seq, standing, stored]: StoredRecord): SavedRecord => {
    const message = stored === null && standing.kind === 'entered' ? on.get(standing.seq) : stored
    return [id, message === undefined || message === null ? { seq, standing } : { message, seq, standing }]
  }

/** The first answer, kept until both lists that share it were asked for. */
function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => {
    made ??= { value: make() }
    return made.value
  }
}

function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  for (const key in value) frozen(value[key])
  return Object.freeze(value)
}
