/**
 * How long a store is waited for. Every answer has the same limit, of a stream each of its items, and what comes after
 * it is given back or passed over. Time is real time: a store knows no other.
 */
import { StoreFailure } from './errors.ts'

export interface Patience {
  /** ms for each answer. */
  readonly timeoutMs: number
  /** What whoever is told may do; it ends the message. */
  readonly wayOut: string
}

/** `storeTimeoutMs` where nobody said another, in ms. */
export const STORE_TIMEOUT_MS = 30_000

/** Of an agent's session. */
export const sessionPatience = (timeoutMs: number = STORE_TIMEOUT_MS): Patience => ({
  timeoutMs,
  wayOut: 'open the session again once the store answers, or allow more with `storeTimeoutMs`',
})

export interface Waiting<T> {
  /** The wait keeps the process from ending; it does by default. */
  readonly holds?: boolean
  /** Given an answer that nobody waits for any more; what it throws or rejects with is nobody's either. */
  readonly late?: (answer: T) => unknown
}

/** `answer`, or StoreFailure 'timeout' when that takes too long. `doing` completes "The store did not ...". */
export async function inTime<T>(
  answer: Promise<T>,
  doing: string,
  patience: Patience,
  { holds = true, late }: Waiting<T> = {},
): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const overdue = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      if (late !== undefined) answer.then(late).catch(() => {}) // Nobody is left to be told.
      reject(tooLate(doing, patience))
    }, timerMs(patience))
    if (!holds) timer.unref()
  })
  try {
    return await Promise.race([answer, overdue])
  } finally {
    clearTimeout(timer)
  }
}

/**
 * Waits that share a timer, because each of them ends when what is written to one log comes to be: those for an append, and
 * for all appends up to one. All are late when for so long none of them ended.
 */
export interface Watch {
  /** `answer`, or StoreFailure 'timeout'. `holds`: it keeps the process from ending. */
  over<T>(answer: Promise<T>, holds: boolean): Promise<T>
}

interface Wait {
  readonly holds: boolean
  late(failure: StoreFailure): void
}

/** `doing` completes "did not" in the message. */
export const createWatch = (doing: string, patience: Patience): Watch => new StoreWatch(doing, patience)

/** A class, because an agent has one: its timer is set when somebody begins to wait, and anew when something comes. */
class StoreWatch implements Watch {
  readonly #doing: string
  readonly #patience: Patience
  #waits: Wait[] | undefined
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(doing: string, patience: Patience) {
    this.#doing = doing
    this.#patience = patience
  }

  over<T>(answer: Promise<T>, holds: boolean): Promise<T> {
    return new Promise((resolve, reject) => {
      const wait: Wait = { holds, late: reject }
      this.#begin(wait)
      const answered = (value: T): void => {
        this.#end(wait)
        resolve(value)
      }
      const failed = (error: unknown): void => {
        this.#end(wait)
        reject(error)
      }
      answer.then(answered, failed)
    })
  }

  #begin(wait: Wait): void {
    this.#waits ??= []
    this.#waits.push(wait)
    if (this.#timer === undefined) {
      this.#timer = setTimeout(() => this.#late(), timerMs(this.#patience))
      if (!wait.holds) this.#timer.unref()
    } else if (wait.holds) this.#timer.ref()
  }

  #end(wait: Wait): void {
    const waits = this.#waits ?? []
    const at = waits.indexOf(wait)
    if (at < 0) return
    waits.splice(at, 1)
    if (waits.length === 0) {
      clearTimeout(this.#timer)
      this.#timer = undefined
      return
    }
    this.#timer?.refresh()
    if (wait.holds && !waits.some(({ holds }) => holds)) this.#timer?.unref()
  }

  #late(): void {
    const waits = this.#waits ?? []
    this.#waits = undefined
    this.#timer = undefined
    for (const { late } of waits) late(tooLate(this.#doing, this.#patience))
  }
}

/**
 * The items, each of which must come in time; the consumer's own time does not count. A stream that is too late is told
 * to end and is left. For a consumer that asks for one item after the other, as `for await` does.
 */
export const itemsInTime = <T>(items: AsyncIterable<T>, doing: string, patience: Patience): AsyncIterable<T> => ({
  [Symbol.asyncIterator]: () => new TimedItems(items[Symbol.asyncIterator](), doing, patience),
})

/** A class for its one timer, which is set anew for each item: a long log is read in no more time than without. */
class TimedItems<T> implements AsyncIterator<T, unknown, undefined> {
  readonly #items: AsyncIterator<T, unknown, undefined>
  readonly #doing: string
  readonly #patience: Patience
  #timer: ReturnType<typeof setTimeout> | undefined
  #giveUp: ((failure: StoreFailure) => void) | undefined

  constructor(items: AsyncIterator<T, unknown, undefined>, doing: string, patience: Patience) {
    this.#items = items
    this.#doing = doing
    this.#patience = patience
  }

  next(): Promise<IteratorResult<T, unknown>> {
    return this.#inTime(this.#items.next())
  }

  return(): Promise<IteratorResult<T, unknown>> {
    return this.#inTime(this.#items.return?.() ?? Promise.resolve({ done: true, value: undefined }))
  }

  #inTime(answer: Promise<IteratorResult<T, unknown>>): Promise<IteratorResult<T, unknown>> {
    return new Promise((resolve, reject) => {
      this.#wait(reject)
      const answered = (result: IteratorResult<T, unknown>): void => {
        this.#rest(result.done === true)
        resolve(result)
      }
      const failed = (error: unknown): void => {
        this.#rest(true)
        reject(error)
      }
      answer.then(answered, failed)
    })
  }

  #wait(giveUp: (failure: StoreFailure) => void): void {
    this.#giveUp = giveUp
    if (this.#timer === undefined) this.#timer = setTimeout(() => this.#late(), timerMs(this.#patience))
    else this.#timer.ref().refresh()
  }

  /** Between two items nobody waits, and the timer keeps no process. */
  #rest(over: boolean): void {
    this.#giveUp = undefined
    if (over) clearTimeout(this.#timer)
    else this.#timer?.unref()
  }

  #late(): void {
    if (this.#giveUp === undefined) return
    this.#giveUp(tooLate(this.#doing, this.#patience))
    // Takes effect, if ever, when the item comes that was waited for.
    this.#items.return?.().catch(() => {})
  }
}

const tooLate = (doing: string, { timeoutMs, wayOut }: Patience): StoreFailure =>
  new StoreFailure('timeout', `The store did not ${doing} within ${timeoutMs} ms: ${wayOut}`)

/** A longer delay would fire at once. */
const timerMs = ({ timeoutMs }: Patience): number => Math.min(timeoutMs, 2 ** 31 - 1)
