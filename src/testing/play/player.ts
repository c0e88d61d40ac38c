/**
 * Plays one path: gives the agent and its surroundings one input after the other, waits until all is quiet, and holds
 * what happened to what the closed loop says. What a user's own code decides instead is observed, and held to as well.
 */
import type { AgentOptions } from '../../agent.ts'
import type { SessionEvent } from '../../log/events.ts'
import { type AgentSnapshot, createFold } from '../../machines/fold.ts'
import { verify } from '../../machines/verify.ts'
import type { Hooks } from '../../services/hooks/contract.ts'
import { type Applied, applyInput, beginLoop } from '../closed-loop.ts'
import { essenceOf, essenceOfState, isTold } from '../essence.ts'
import { InputRefused, isWaiting, type LoopState, settleTime } from '../loop-state.ts'
import type { AgentPath, PathEvent } from '../path.ts'
import type { PathInput } from '../path-input.ts'
import { actorsOf, plainInput, waitsOf } from '../waits.ts'
import { inputTo, perform } from './deeds.ts'
import type { Lane } from './lane.ts'
import { type Life, openLife } from './life.ts'
import { PathMismatch } from './mismatch.ts'

/** What came of a path. */
export interface PlayedPath {
  /** The whole durable log; of the last fork, if there was one. */
  readonly events: readonly SessionEvent[]
  /** What happened, in order: the inputs of the path, or what a user's own code made of them. */
  readonly inputs: readonly PathInput[]
  /** Inputs that nothing waited for any more, after a user's own code had decided otherwise than the path. */
  readonly skipped: number
  /** How often what is was held to what must be. */
  readonly comparisons: number
  readonly crashes: number
  /** How the turns ended, in order: kinds of `TurnEndReason`. */
  readonly ends: readonly string[]
}

export interface PlayerOptions {
  readonly hooks: Partial<Hooks>
  readonly agent: Partial<AgentOptions>
  /** Real ms to wait for what must happen. */
  readonly patienceMs: number
}

/** A path that went another way comes to rest within this many inputs. */
const MAX_PLAIN_INPUTS = 200

/** @throws PathMismatch */
export async function playInLane(lane: Lane, path: AgentPath, options: PlayerOptions): Promise<PlayedPath> {
  await lane.enter()
  const player = new Player(lane, path, options)
  try {
    return await player.play()
  } finally {
    await player.leave()
    lane.leave()
  }
}

interface Expected {
  readonly events: readonly PathEvent[]
  readonly state: Pick<AgentSnapshot, 'value' | 'context'>
}

class Player {
  readonly #lane: Lane
  readonly #path: AgentPath
  readonly #options: PlayerOptions
  readonly #newId: () => string
  readonly #ran = new Set<string>()
  readonly #inputs: PathInput[] = []
  readonly #folded = createFold()
  #sessionId: string
  #events: SessionEvent[] = []
  #state: LoopState
  #life!: Life
  #step = 0
  /** The user's own code decided otherwise than the path: it says no more what must come. */
  #diverged = false
  #skipped = 0
  #comparisons = 0
  #crashes = 0

  constructor(lane: Lane, path: AgentPath, options: PlayerOptions) {
    this.#lane = lane
    this.#path = path
    this.#options = options
    this.#state = beginLoop(path.setup)
    this.#sessionId = lane.newSession()
    let ids = 0
    this.#newId = () => `id-${++ids}`
  }

  async play(): Promise<PlayedPath> {
    await this.#open('continue', 0)
    for (const [step, { input, ...expected }] of this.#path.steps.entries()) {
      this.#step = step
      const applied = this.#foresee(input)
      if (applied === undefined) this.#skipped += 1
      else await this.#playInput(input, applied, expected)
    }
    if (this.#diverged) await this.#comeToRest()
    await this.#answerLate()
    await this.#finish()
    return {
      events: this.#events,
      inputs: this.#inputs,
      skipped: this.#skipped,
      comparisons: this.#comparisons,
      crashes: this.#crashes,
      ends: this.#events.flatMap((event) => (event.type === 'turn/end' ? [event.data.reason.kind] : [])),
    }
  }

  /** Whatever became of the path: nothing of it is left in the lane. */
  async leave(): Promise<void> {
    const life: Life | undefined = this.#life
    if (life === undefined) return
    life.die()
    await life.release()
  }

  /** Only on another way than the path's may an input come that nothing waits for. */
  #foresee(input: PathInput): Applied | undefined {
    try {
      return applyInput(this.#state, input)
    } catch (thrown) {
      if (this.#diverged && thrown instanceof InputRefused) return undefined
      throw thrown
    }
  }

  async #playInput(input: PathInput, foreseen: Applied, planned: Expected): Promise<void> {
    this.#inputs.push(input)
    const actual = await this.#outcomeOf(await this.#act(input))
    const isAsForeseen = isSame(actual, [input])
    if (!isAsForeseen) {
      this.#diverged = true
      this.#inputs.splice(-1, 1, ...actual)
    }
    const applied = isAsForeseen ? foreseen : applyAll(this.#state, actual)
    this.#state = applied.state
    await this.#hold(this.#diverged ? applied : planned)
  }

  /** Time passes, and the input happens. Resolves with what really did. */
  async #act(input: PathInput): Promise<readonly PathInput[]> {
    const now = this.#state.now + 1
    switch (input.type) {
      case 'crash':
        await this.#crash(input, now)
        return [input]
      case 'suspend':
        await this.#suspend(now)
        return [input]
      case 'fork':
        await this.#fork(now)
        return [input]
      default:
        this.#life.clock.travel(now)
        return this.#patiently(perform(this.#life, this.#state, input), `an answer to ${JSON.stringify(input)}`)
    }
  }

  /** A real tool is seen by its result, in which hooks may have had their say. */
  async #outcomeOf(done: readonly PathInput[]): Promise<readonly PathInput[]> {
    const last = done.at(-1)
    const { 'tools/execute': around, 'tools/post-execute': after } = {
      ...this.#options.agent.hooks,
      ...this.#options.hooks,
    }
    if (last?.type === 'denied' && after !== undefined) {
      const { added } = await this.#resultOf(last.callId)
      return [{ ...last, ...added }]
    }
    if (last?.type !== 'settled' || !(around ?? after ?? this.#isReal(last.callId))) return done
    return [...done.slice(0, -1), await this.#settledAs(last.callId)]
  }

  #isReal(callId: string): boolean {
    const name = this.#state.context.calls.find((call) => call.callId === callId)?.name
    return this.#path.setup.tools.some((tool) => tool.name === name && tool.tool !== undefined)
  }

  async #settledAs(callId: string): Promise<PathInput> {
    const { result, added } = await this.#resultOf(callId)
    return { type: 'settled', callId, outcome: outcomeIn(result), ...added }
  }

  /** The result of a call once it is there, and the messages that it brought along. */
  async #resultOf(callId: string) {
    const [result, ...rest] = await this.#until(async () => {
      const events = await this.#stored(this.#events.length)
      const at = events.findIndex(
        (event) => event.type === 'tool/result' && event.data.message.source.callId === callId,
      )
      return at < 0 ? undefined : events.slice(at)
    }, `a result of ${callId}`)
    const ids = addedBy(rest)
    return { result, added: ids.length === 0 ? {} : { added: ids } }
  }

  // The process

  async #open(recovery: 'continue' | 'interrupt', now: number): Promise<void> {
    const { setup } = this.#path
    const { hooks, agent } = this.#options
    this.#life = await openLife({
      setup,
      store: this.#lane.store,
      sessionId: this.#sessionId,
      recovery,
      now,
      newId: this.#newId,
      hooks,
      agent,
      ran: this.#ran,
    })
  }

  async #crash({ recovery, cancel }: Extract<PathInput, { type: 'crash' }>, now: number): Promise<void> {
    this.#crashes += 1
    this.#life.die()
    await this.#lane.reopen()
    if (cancel) {
      const { turn } = this.#state.context
      await this.#lane.store.post(this.#sessionId, {
        id: `cancel-${this.#crashes}`,
        kind: 'cancel',
        turn,
        cause: { kind: 'user' },
      })
    }
    await this.#open(recovery, now)
  }

  async #suspend(now: number): Promise<void> {
    const { agent, clock } = this.#life
    clock.travel(now)
    let closed = false
    const closing = agent.close({ graceMs: 0 }).finally(() => {
      closed = true
    })
    while (!closed) {
      // A body that runs has its grace, which is over at once.
      clock.travel(now)
      await Promise.race([closing, immediate()])
    }
    await closing
    await this.#open('continue', now)
  }

  async #fork(now: number): Promise<void> {
    const before = this.#life
    const { sessionId } = await before.agent.fork({ sessionId: this.#lane.newSession() })
    before.die()
    await before.release()
    this.#sessionId = sessionId
    const seed = (await this.#stored(0)).slice(0, this.#events.length)
    this.#compare('what the fork inherited', this.#events.map(plainly), seed.map(plainly))
    await this.#open('continue', now)
  }

  // Quiet, and what must be then

  /** Waits until all that must come came, and compares. */
  async #hold(expected: Expected): Promise<void> {
    await this.#quiet()
    const events = await this.#stored(this.#events.length)
    this.#events.push(...events)
    for (const event of events) this.#folded.push(event)
    this.#compare('the durable events', expected.events.map(essenceOf), events.filter(isTold).map(essenceOf))
    const live = this.#life.snapshot()
    this.#compare('the live state and the path', essenceOfState(expected.state), essenceOfState(live))
    this.#compare('the live state and the folded log', linesOf(this.#folded.snapshot()), linesOf(live))
    this.#compare('the actors that live', [...actorsOf(this.#state)].sort(), Object.keys(live.children).sort())
    this.#compare('what the agent waits for', waitsOf(this.#state), this.#waits())
    this.#compare('the timers that are set', timersOf(this.#state).map(String), this.#life.clock.due().map(String))
    this.#compare('what was asked and should not', [], this.#life.surroundings.faults)
  }

  /** Nothing more happens; or too much time has passed, and the comparison tells what is missing. */
  async #quiet(): Promise<void> {
    const { agent, surroundings } = this.#life
    const isReached = (): boolean =>
      surroundings.running === 0 &&
      isSame(this.#waits(), waitsOf(this.#state)) &&
      isSame(Object.keys(this.#life.snapshot().children).sort(), [...actorsOf(this.#state)].sort())
    await this.#waitUntil(async () => {
      const seen = this.#life.changes()
      await agent.session.flush()
      await immediate()
      // What was recorded meanwhile shows as a change when it is durable.
      await agent.session.flush()
      return this.#life.changes() === seen && isReached() ? true : undefined
    })
  }

  /** Asks again whenever something happened, until there is an answer or patience ends. */
  async #waitUntil<T>(look: () => Promise<T | undefined>): Promise<T | undefined> {
    const patience = createPatience(this.#options.patienceMs)
    try {
      for (;;) {
        const seen = this.#life.changes()
        const found = await look()
        if (found !== undefined || patience.isOver()) return found
        if (this.#life.changes() === seen) await Promise.race([this.#life.changed(seen), patience.over])
      }
    } finally {
      patience.end()
    }
  }

  async #until<T>(look: () => Promise<T | undefined>, what: string): Promise<T> {
    const found = await this.#waitUntil(look)
    return found ?? this.#miss(what)
  }

  async #patiently<T>(result: Promise<T>, what: string): Promise<T> {
    const patience = createPatience(this.#options.patienceMs)
    try {
      const first = await Promise.race([result.then((value) => ({ value })), patience.over])
      return first === undefined ? this.#miss(what) : first.value
    } finally {
      patience.end()
    }
  }

  /** Names, sorted, of what the agent really waits for. */
  #waits(): readonly string[] {
    const { agent, surroundings } = this.#life
    const { value, context } = this.#life.snapshot()
    return [
      ...surroundings.waiting(),
      ...(isWaiting({ value }) ? [`retry ${context.turn}.${context.step}.${context.attempt}`] : []),
      ...agent.approvals().map(({ callId, run }) => `approval ${callId} ${run}`),
    ].sort()
  }

  async #stored(from: number): Promise<readonly SessionEvent[]> {
    const events: SessionEvent[] = []
    for await (const event of this.#lane.store.read(this.#sessionId, { from })) events.push(event)
    return events
  }

  #compare(what: string, expected: readonly string[], actual: readonly string[]): void {
    this.#comparisons += 1
    if (!isSame(expected, actual)) this.#differ(what, expected, actual)
  }

  #miss(what: string): never {
    return this.#differ('what happened', [what], [`nothing within ${this.#options.patienceMs} ms`])
  }

  #differ(what: string, expected: readonly string[], actual: readonly string[]): never {
    throw new PathMismatch({
      label: this.#path.label,
      step: this.#step,
      inputs: this.#inputs,
      what,
      expected,
      actual,
    })
  }

  // The end

  async #comeToRest(): Promise<void> {
    for (let n = 0; n < MAX_PLAIN_INPUTS; n++) {
      const input = plainInput(this.#state)
      if (input === undefined) return
      const applied = applyInput(this.#state, input)
      await this.#playInput(input, applied, applied)
    }
  }

  /** What a cancel left hanging speaks at last; nobody hears it. */
  async #answerLate(): Promise<void> {
    const answered = this.#life.surroundings.answerLate((name) => inputTo(name, this.#path.setup))
    if (answered > 0) await this.#hold({ events: [], state: this.#state })
  }

  async #finish(): Promise<void> {
    if (this.#state.value === 'idle') {
      await this.#life.agent.close()
      this.#compare('what closing at rest wrote', [], (await this.#stored(this.#events.length)).map(essenceOf))
    }
    const verified = verify(this.#events)
    this.#compare(
      'the rules of the log and the log',
      [],
      verified.ok ? [] : verified.violations.map(({ seq, rule, message }) => `${rule} at ${seq}: ${message}`),
    )
  }
}

/** All at one moment. */
function applyAll(before: LoopState, inputs: readonly PathInput[]): Applied {
  const events: PathEvent[] = []
  let state = before
  for (const [index, input] of inputs.entries()) {
    const applied = applyInput(index === 0 ? state : { ...state, now: state.now - 1 }, input)
    events.push(...applied.events)
    state = applied.state
  }
  return { state, events }
}

/** Each is put into the inbox by an event of its own, right after the result. */
function addedBy(events: readonly SessionEvent[]): readonly string[] {
  const ids: string[] = []
  for (const event of events) {
    if (event.type !== 'agent/inbox/spliced') break
    const [item, ...others] = event.data.inserted
    if (item?.kind !== 'message' || others.length > 0) break
    ids.push(item.message.id)
  }
  return ids
}

function outcomeIn(event: SessionEvent | undefined): 'ok' | 'error' | 'concludes' {
  if (event?.type !== 'tool/result') return 'ok'
  // A body that ended well under a cancel is answered as aborted: the closed loop knows that.
  if (event.data.message.content[0].isError === true && event.data.error?.code !== 'ABORTED') return 'error'
  return event.data.concludesTurn ? 'concludes' : 'ok'
}

/** When timers are due in this state, in order. */
function timersOf(state: LoopState): readonly number[] {
  const { context, cancelledAt } = state
  const due = context.calls.flatMap(({ status, approval }) =>
    status === 'awaiting' && approval?.expiresAt !== undefined ? [approval.expiresAt] : [],
  )
  if (isWaiting(state) && context.retry !== null) due.push(context.retry.at + context.retry.delayMs)
  if (cancelledAt !== undefined) due.push(settleTime(state))
  return due.sort((a, b) => a - b)
}

const plainly = (event: SessionEvent): string => JSON.stringify(event)

const linesOf = ({ value, context }: Pick<AgentSnapshot, 'value' | 'context'>): readonly string[] =>
  Object.entries({ value, ...context }).map(([field, said]) => `${field} ${JSON.stringify(said)}`)

const isSame = (one: readonly unknown[], other: readonly unknown[]): boolean =>
  JSON.stringify(one) === JSON.stringify(other)

const immediate = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** `over` resolves after that many real ms, unless it was ended before. */
function createPatience(ms: number) {
  let over = false
  let timer: NodeJS.Timeout | undefined
  return {
    isOver: () => over,
    over: new Promise<undefined>((resolve) => {
      timer = setTimeout(() => {
        over = true
        resolve(undefined)
      }, ms)
    }),
    end: () => clearTimeout(timer),
  }
}
