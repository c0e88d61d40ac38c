/**
 * Plays one path: gives the agent and its surroundings one input after the other, waits until all is quiet, and holds
 * what happened to what the closed loop says. What a user's own code decides instead is observed, and held to as well.
 */
import type { SessionEvent } from '../../log/events.ts'
import { createInvariantChecker } from '../../log/invariants.ts'
import { type AgentSnapshot, createFold } from '../../machines/fold.ts'
import { callOf } from '../../machines/tool-records.ts'
import { type Violation, verify } from '../../machines/verify.ts'
import { type Applied, applyInput, beginLoop } from '../closed-loop.ts'
import { essenceOf, essenceOfState, isTold } from '../essence.ts'
import { InputRefused, type LoopState } from '../loop-state.ts'
import type { AgentPath, PathEvent } from '../path.ts'
import type { PathInput } from '../path-input.ts'
import { plainInput } from '../waits.ts'
import { Comparison, isSame, linesOf } from './comparison.ts'
import { type Deed, inputTo, perform } from './deeds.ts'
import { missingOf, turnBefore } from './demands.ts'
import type { Lane } from './lane.ts'
import { type Life, openLife } from './life.ts'
import type { PathMismatch } from './mismatch.ts'
import { applyAll, withResult } from './observed.ts'
import { isStill, waitUntil, within } from './patience.ts'
import type { PlayedPath, PlayerOptions } from './played.ts'
import { standingIn, standingOf } from './standing.ts'

/** A path that went another way comes to rest within this many inputs. */
const MAX_PLAIN_INPUTS = 200

/** @throws PathMismatch */
export async function playInLane(lane: Lane, path: AgentPath, options: PlayerOptions): Promise<PlayedPath> {
  await lane.enter()
  const player = new Player(lane, path, options)
  try {
    return await player.play()
  } catch (thrown) {
    throw player.mismatch(thrown)
  } finally {
    await player.leave().finally(() => lane.leave())
  }
}

const DEMANDS = 'what the input must bring about and the log'

const RULES = 'the rules of the log and the log'

const ruleOf = ({ seq, rule, message }: Violation): string => `${rule} at ${seq}: ${message}`

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
  readonly #told: Comparison
  readonly #folded = createFold()
  readonly #rules = createInvariantChecker()
  #sessionId: string
  #events: SessionEvent[] = []
  #state: LoopState
  #life!: Life
  /** The user's own code decided otherwise than the path: it says no more what must come. */
  #diverged = false
  #skipped = 0
  #crashes = 0

  constructor(lane: Lane, path: AgentPath, options: PlayerOptions) {
    this.#lane = lane
    this.#path = path
    this.#options = options
    this.#told = new Comparison(path.label)
    this.#state = beginLoop(path.setup)
    this.#sessionId = lane.newSession()
    let ids = 0
    this.#newId = () => `id-${++ids}`
  }

  async play(): Promise<PlayedPath> {
    await this.#open('continue', 0)
    for (const [step, { input, ...expected }] of this.#path.steps.entries()) {
      this.#told.step = step
      const applied = this.#foresee(input)
      if (applied === undefined) this.#skipped += 1
      else await this.#playInput(input, applied, expected)
    }
    if (this.#diverged) await this.#comeToRest()
    await this.#answerLate()
    await this.#finish()
    return {
      events: this.#events,
      inputs: this.#told.inputs,
      skipped: this.#skipped,
      comparisons: this.#told.count,
      crashes: this.#crashes,
      ends: this.#events.flatMap((event) => (event.type === 'turn/end' ? [event.data.reason.kind] : [])),
    }
  }

  /** Whatever was thrown, told with its place on the path. */
  mismatch(thrown: unknown): PathMismatch {
    return this.#told.mismatch(thrown)
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
    this.#told.inputs.push(input)
    const actual = await this.#outcomeOf(await this.#act(input))
    const isAsForeseen = isSame(actual, [input])
    if (!isAsForeseen) {
      this.#diverged = true
      this.#told.inputs.splice(-1, 1, ...actual)
    }
    const applied = isAsForeseen ? foreseen : applyAll(this.#state, actual)
    this.#state = applied.state
    const before = turnBefore(this.#events)
    const from = this.#events.length
    await this.#hold(this.#diverged ? applied : planned)
    if (isAsForeseen) this.#told.compare(DEMANDS, missingOf(input, before, this.#events.slice(from)), [])
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
    const { patienceMs } = this.#options
    const done = await within(patienceMs, perform(this.#life, this.#state, input))
    return done ?? this.#told.miss(`an answer to ${JSON.stringify(input)}`, patienceMs)
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
    return seen ?? this.#told.miss(`a result of ${last.callId}`, patienceMs)
  }

  #isReal(callId: string): boolean {
    const name = callOf(this.#state.context, callId)?.name
    return this.#path.setup.tools.some((tool) => tool.name === name && tool.tool !== undefined)
  }

  // The process

  async #open(recovery: 'continue' | 'interrupt', now: number): Promise<void> {
    const { setup } = this.#path
    const { hooks, agent } = this.#options
    if (this.#events.length > 0) await this.#holdBefore()
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

  /** What was durable is, to the letter: also what a fork inherited. */
  async #holdBefore(): Promise<void> {
    const stored = (await this.#stored(0)).slice(0, this.#events.length)
    this.#told.compare('what was durable and the log', this.#events.map(plainly), stored.map(plainly))
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
    this.#life.clock.travel(now)
    await this.#life.suspend()
    await this.#open('continue', now)
  }

  async #fork(now: number): Promise<void> {
    const before = this.#life
    const { sessionId } = await before.agent.fork({ sessionId: this.#lane.newSession() })
    before.die()
    await before.release()
    this.#sessionId = sessionId
    await this.#open('continue', now)
  }

  // Quiet, and what must be then

  /** Waits until all that must come came, and compares. */
  async #hold(expected: Expected): Promise<void> {
    await this.#quiet()
    const events = await this.#stored(this.#events.length)
    this.#events.push(...events)
    for (const event of events) this.#folded.push(event)
    this.#told.compare('what the hooks may answer', [], events.flatMap(misuseIn))
    this.#told.compare('the durable events', expected.events.map(essenceOf), events.filter(isTold).map(essenceOf))
    const live = this.#life.snapshot()
    this.#told.compare('the live state and the path', essenceOfState(expected.state), essenceOfState(live))
    this.#told.compare('the live state and the folded log', linesOf(this.#folded.snapshot()), linesOf(live))
    const must = standingIn(this.#state)
    const is = standingOf(this.#life)
    this.#told.compare('the actors that live', must.actors, is.actors)
    this.#told.compare('what the agent waits for', must.waits, is.waits)
    this.#told.compare('the timers that are set', must.timers, is.timers)
    this.#told.compare('what was asked and should not', [], this.#life.surroundings.faults)
    const broken = [...events.flatMap((event) => this.#rules.check(event)), ...this.#rules.rest()]
    this.#told.compare(RULES, [], broken.map(ruleOf))
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

  // The end

  async #comeToRest(): Promise<void> {
    for (let n = 0; n < MAX_PLAIN_INPUTS; n++) {
      const input = plainInput(this.#state)
      if (input === undefined) return
      const applied = applyInput(this.#state, input)
      await this.#playInput(input, applied, applied)
    }
    throw new Error(`The agent does not come to rest: ${MAX_PLAIN_INPUTS} plain answers later it still works`)
  }

  /** What a cancel left hanging speaks at last; nobody hears it. */
  async #answerLate(): Promise<void> {
    const answered = this.#life.surroundings.answerLate((name) => inputTo(name, this.#path.setup))
    if (answered > 0) await this.#hold({ events: [], state: this.#state })
  }

  async #finish(): Promise<void> {
    if (this.#state.value === 'idle') {
      await this.#life.agent.close()
      this.#told.compare('what closing at rest wrote', [], (await this.#stored(this.#events.length)).map(essenceOf))
    }
    const verified = verify(this.#events)
    this.#told.compare(RULES, [], verified.ok ? [] : verified.violations.map(ruleOf))
  }
}

/** An answer that is none. What a hook throws of its own accord is a verdict like any other. */
function misuseIn(event: SessionEvent): readonly string[] {
  if (event.type !== 'agent/hook-failed' || !MISUSES.has(event.data.error.code)) return []
  return [`${event.data.hook}: ${event.data.error.message}`]
}

/** Of what is thrown when a hook's answer is checked. */
const MISUSES: ReadonlySet<string> = new Set(['HOOK_MISUSE', 'NOT_JSON', 'INVALID_EVENT'])

const plainly = (event: SessionEvent): string => JSON.stringify(event)
