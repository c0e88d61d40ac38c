/**
 * Plays one path: gives the agent and its surroundings one input after the other, waits until all is quiet, and holds
 * what happened to what the closed loop says. What a user's own code decides instead is observed, and held to as well.
 */
import type { AgentOptions } from '../../agent.ts'
import type { SessionEvent } from '../../log/events.ts'
import { type AgentSnapshot, createFold } from '../../machines/fold.ts'
import { callOf } from '../../machines/tool-records.ts'
import { verify } from '../../machines/verify.ts'
import type { Hooks } from '../../services/hooks/contract.ts'
import { type Applied, applyInput, beginLoop } from '../closed-loop.ts'
import { essenceOf, essenceOfState, isTold } from '../essence.ts'
import { InputRefused, type LoopState } from '../loop-state.ts'
import type { AgentPath, PathEvent } from '../path.ts'
import type { PathInput } from '../path-input.ts'
import { plainInput } from '../waits.ts'
import { type Deed, inputTo, perform } from './deeds.ts'
import type { Lane } from './lane.ts'
import { type Life, openLife } from './life.ts'
import { PathMismatch } from './mismatch.ts'
import { applyAll, withResult } from './observed.ts'
import { immediate, isStill, waitUntil, within } from './patience.ts'
import { standingIn, standingOf } from './standing.ts'

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
        return this.#perform(input)
    }
  }

  async #perform(input: Deed): Promise<readonly PathInput[]> {
    const done = await within(this.#options.patienceMs, perform(this.#life, this.#state, input))
    return done ?? this.#miss(`an answer to ${JSON.stringify(input)}`)
  }

  /** A real tool is seen by its result, in which hooks may have had their say. */
  async #outcomeOf(done: readonly PathInput[]): Promise<readonly PathInput[]> {
    const last = done.at(-1)
    const { 'tools/execute': around, 'tools/post-execute': after } = {
      ...this.#options.agent.hooks,
      ...this.#options.hooks,
    }
    const isSeen =
      (last?.type === 'denied' && after !== undefined) ||
      (last?.type === 'settled' && (around !== undefined || after !== undefined || this.#isReal(last.callId)))
    if (!isSeen) return done
    const { patienceMs } = this.#options
    const seen = await waitUntil(this.#life, patienceMs, async () =>
      withResult(done, last.callId, await this.#stored(this.#events.length)),
    )
    return seen ?? this.#miss(`a result of ${last.callId}`)
  }

  #isReal(callId: string): boolean {
    const name = callOf(this.#state.context, callId)?.name
    return this.#path.setup.tools.some((tool) => tool.name === name && tool.tool !== undefined)
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
    const must = standingIn(this.#state)
    const is = standingOf(this.#life)
    this.#compare('the actors that live', must.actors, is.actors)
    this.#compare('what the agent waits for', must.waits, is.waits)
    this.#compare('the timers that are set', must.timers, is.timers)
    this.#compare('what was asked and should not', [], this.#life.surroundings.faults)
  }

  /** Nothing more happens, and all that must has; or patience is over, and the comparison tells what is missing. */
  async #quiet(): Promise<void> {
    const { actors, waits } = standingIn(this.#state)
    const isReached = (): boolean => {
      const is = standingOf(this.#life)
      return this.#life.surroundings.running === 0 && isSame(waits, is.waits) && isSame(actors, is.actors)
    }
    await waitUntil(this.#life, this.#options.patienceMs, async () =>
      (await isStill(this.#life)) && isReached() ? true : undefined,
    )
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

const plainly = (event: SessionEvent): string => JSON.stringify(event)

const linesOf = ({ value, context }: Pick<AgentSnapshot, 'value' | 'context'>): readonly string[] =>
  Object.entries({ value, ...context }).map(([field, said]) => `${field} ${JSON.stringify(said)}`)

const isSame = (one: readonly unknown[], other: readonly unknown[]): boolean =>
  JSON.stringify(one) === JSON.stringify(other)
