/**
 * One life of a simulated agent: the real chart over a log in memory, with actors that answer late, at once, never, or
 * throw. After every batch the state folded from the log must be the live one.
 */
import { type ActorRefFrom, createActor } from 'xstate'
import { isMoving, type Recordable, type SessionEvent } from '../../../src/log/events.ts'
import { placed, validateNew } from '../../../src/log/validate.ts'
import type { agentMachine } from '../../../src/machines/agent.ts'
import type { AgentCommand, CancelCommand } from '../../../src/machines/commands.ts'
import { type AgentSnapshot, createFold, stateName } from '../../../src/machines/fold.ts'
import { resumption } from '../../../src/machines/resumption.ts'
import type { AskModelInput, CallInput } from '../../../src/services/inputs.ts'
import type { Verdict } from '../../../src/services/verdicts.ts'
import { anyCommand, anyReply } from './commands.ts'
import { answer, chunkOf, dispatchSeq, type Work } from './effects.ts'
import { type Host, hosted, simulatedMachine } from './machine.ts'
import type { Deed, Past, WorldOptions } from './past.ts'
import type { Random } from './random.ts'

interface Effect {
  readonly work: Work
  readonly mode: 'late' | 'at once' | 'never'
  readonly chunkSeqs: number[]
  readonly say: (verdict: Verdict) => void
  /** The request is out, or the body runs. */
  begun: boolean
  answered: boolean
}

/** What fold and live must agree on. */
const stateOf = ({ value, context }: Pick<AgentSnapshot, 'value' | 'context'>): string =>
  JSON.stringify([value, context])

const nameOf = (work: Work): string => (work.kind === 'call' ? `call ${work.input.callId}` : work.kind)

/** Opened over a past, driven, and then finished, closed or killed; it throws at the first thing that must not be. */
export class World implements Host {
  readonly log: SessionEvent[]
  readonly deeds: Deed[]
  /** How long the log was after each batch. */
  readonly batches: number[]
  /** How much of the log this life found. */
  readonly found: number
  checks = 0
  private readonly options: WorldOptions
  private readonly random: Random
  private readonly folded = createFold()
  private readonly agent: ActorRefFrom<typeof agentMachine>
  private readonly effects = new Set<Effect>()
  /** Stopped actors, which may still speak. */
  private readonly stopped: Effect[] = []
  /** The last moving event of each record. */
  private readonly mayMove = new Set<number>()
  private sealed: number
  private durable: number
  private now: number
  private aborted: boolean
  private observed = true
  private closing = false
  private defect: unknown

  constructor(past: Past, options: WorldOptions, random: Random) {
    this.options = options
    this.random = random
    this.log = [...past.log]
    this.deeds = [...past.deeds]
    this.batches = [...past.batches]
    this.found = this.sealed = this.durable = past.log.length
    this.now = past.log.at(-1)?.time ?? 0
    for (const event of past.log) this.folded.push(event)
    this.aborted = this.folded.snapshot().context.cancel !== null
    this.agent = createActor(simulatedMachine, { snapshot: this.folded.snapshot() })
    hosted.set(this.agent, this)
    this.agent.subscribe({ next: () => this.guarded(() => this.seal()), error: (error) => this.fail(error) })
    this.agent.start()
  }

  /** Opens the log as composition does: the resumption first, with a posted cancel of its turn, then the rest. */
  open(posted: readonly AgentCommand[]): void {
    const snapshot = this.snapshot()
    const resumed = resumption(snapshot, this.options)
    const cancel = posted.find(
      (command): command is CancelCommand =>
        command.type === 'command.cancel' && command.turn === snapshot.context.turn,
    )
    if (resumed !== undefined) {
      const data = { ...resumed, version: '0.0.0', chart: 'sha256:0' }
      this.send({ type: 'command.resume', resumed: data, ...(cancel === undefined ? {} : { cancel }) })
    }
    for (const command of posted) if (command.type !== 'command.cancel') this.send(command)
  }

  snapshot(): AgentSnapshot {
    return this.agent.getSnapshot()
  }

  get past(): Past {
    return { log: [...this.log], batches: [...this.batches], deeds: [...this.deeds] }
  }

  send(input: AgentCommand | Verdict): void {
    const recorded = this.log.length
    const refused = this.answersNobody(input)
    this.agent.send(input)
    if (this.defect !== undefined) throw this.defect
    if (refused && this.log.length > recorded)
      throw new Error(`An answer to nobody's question: ${JSON.stringify(input)}`)
  }

  private answersNobody(input: AgentCommand | Verdict): boolean {
    if (input.type !== 'command.approve' && input.type !== 'command.deny') return false
    const call = this.snapshot().context.calls.find(({ callId }) => callId === input.callId)
    return call?.status !== 'awaiting' || call.run !== input.run
  }

  // The chart's ports

  write(events: readonly Recordable[]): readonly SessionEvent[] {
    const written = events.map((event, index) => {
      const { maxSteps, maxParallelToolCalls } = this.options
      const stamped =
        event.type === 'turn/start'
          ? { ...event, data: { ...event.data, limits: { maxSteps, maxParallelToolCalls } } }
          : event
      return placed(validateNew(stamped), this.log.length + index, this.now)
    })
    this.log.push(...written)
    const last = written.findLast(isMoving)
    if (last !== undefined) this.mayMove.add(last.seq)
    return written
  }

  openTurn(): void {
    this.aborted = false
  }

  abortTurn(): void {
    this.aborted = true
    const turn = this.log.findLast((event) => event.type === 'turn/cancel')?.data.turn ?? 0
    this.start({ kind: 'settle', turn }, (verdict) => this.send(verdict))
  }

  closeTurn(): void {
    for (const effect of this.effects) if (effect.work.kind === 'settle') this.stop(effect)
  }

  // The chart's actors

  /** Starts an actor's work; what it returns stops it. */
  start(work: Work, say: (verdict: Verdict) => void): () => void {
    if (this.closing) return () => {}
    for (const other of this.effects) {
      if (nameOf(other.work) === nameOf(work)) this.fail(new Error(`Two actors for ${nameOf(work)}`))
    }
    const drawn = this.random.draw()
    const { throws, never, atOnce } = this.options
    if (drawn < throws && work.kind !== 'settle') throw new Error('The actor throws')
    const mode = drawn < throws + never ? 'never' : drawn < throws + never + atOnce ? 'at once' : 'late'
    const effect: Effect = {
      work,
      mode: work.kind === 'settle' ? 'late' : mode,
      chunkSeqs: [],
      say,
      begun: false,
      answered: false,
    }
    this.effects.add(effect)
    if (effect.mode === 'at once') this.guarded(() => this.answerAtOnce(effect))
    return () => this.stop(effect)
  }

  private stop(effect: Effect): void {
    this.effects.delete(effect)
    this.stopped.push(effect)
  }

  private answerAtOnce(effect: Effect): void {
    while (this.effects.has(effect) && this.advance(effect)) {
      // A request and a body are begun first, and answered then.
    }
  }

  /** The next thing an actor does: begin, or answer. False if it has nothing to do yet. */
  private advance(effect: Effect): boolean {
    const { work } = effect
    if (!effect.begun && work.kind === 'askModel') return this.begin(effect, () => this.request(work.input, effect))
    if (!effect.begun && work.kind === 'call' && work.input.phase === 'executing') {
      return this.begin(effect, () => this.body(work.input))
    }
    if (work.kind === 'askModel') this.chunks(work.input, effect)
    const verdict = this.answerTo(effect)
    if (verdict === undefined) return false
    if (work.kind === 'wait') this.now = Math.max(this.now, work.input.at + work.input.delayMs)
    if (verdict.type === 'verdict.expired') this.now = Math.max(this.now, this.expiryOf(work))
    this.effects.delete(effect)
    effect.answered = true
    effect.say(verdict)
    return true
  }

  private expiryOf(work: Work): number {
    return work.kind === 'call' ? (work.input.expiresAt ?? 0) : 0
  }

  private answerTo({ work, chunkSeqs }: Effect): Verdict | undefined {
    const { random, now, aborted } = this
    return answer(work, { random, now, aborted, chunkSeqs, approvals: this.options.approvals })
  }

  /** Flushes first: nothing is done in the world before its record is durable. */
  private begin(effect: Effect, deed: () => void): boolean {
    effect.begun = true
    this.seal()
    this.durable = this.log.length
    deed()
    return true
  }

  private request(input: AskModelInput, effect: Effect): void {
    this.do('request', `${input.turn}.${input.step}.${input.attempt}`)
    if (this.random.chance(0.7)) this.chunk(input, effect, true)
  }

  private body(input: CallInput): void {
    const seq = dispatchSeq(this.log, input)
    if (seq === undefined || seq >= this.durable)
      throw new Error(`${input.callId} began before its dispatch was durable`)
    this.do('body', `${input.callId}.${input.run}`)
  }

  private do(kind: Deed['kind'], key: string): void {
    if (this.deeds.some((deed) => deed.kind === kind && deed.key === key)) throw new Error(`Twice: ${kind} ${key}`)
    this.deeds.push({ kind, key, at: this.log.length })
  }

  private chunks(input: AskModelInput, effect: Effect): void {
    if (effect.chunkSeqs.length > 0 && this.random.chance(0.5)) this.chunk(input, effect, false)
  }

  private chunk(input: AskModelInput, effect: Effect, first: boolean): void {
    effect.chunkSeqs.push(this.log.length)
    this.write([{ type: 'assistant/chunk', data: chunkOf(input, first) }])
  }

  // After every macrostep

  /** Closes the batch in hand: fold and live must agree, and observers may give a command. */
  private seal(): void {
    if (this.log.length === this.sealed) return
    for (const event of this.log.slice(this.sealed)) this.follow(event)
    this.sealed = this.log.length
    this.batches.push(this.sealed)
    this.check()
    const gives = this.observed && !this.closing && this.random.chance(this.options.observers)
    if (gives) this.agent.send(anyCommand(this.random, this.snapshot().context))
  }

  /** Every event is awaited where it comes, and of each record only the last one moves. */
  private follow(event: SessionEvent): void {
    if (!this.folded.accepts(event)) throw new Error(`No state awaits seq ${event.seq}, ${event.type}`)
    const before = this.mayMove.has(event.seq) ? undefined : stateName(this.folded.snapshot())
    this.folded.push(event)
    if (before === undefined || before === stateName(this.folded.snapshot())) return
    throw new Error(`Seq ${event.seq}, ${event.type}, moves from ${before} in the middle of a record`)
  }

  private check(): void {
    this.checks++
    const live = this.snapshot()
    const [folded, lived] = [stateOf(this.folded.snapshot()), stateOf(live)]
    if (folded !== lived) throw new Error(`The log folds to\n${folded}\nwhile the agent is at\n${lived}`)
    const children = Object.keys(live.children)
    if (live.value === 'idle' && children.length > 0) throw new Error(`Left over in idle: ${children}`)
  }

  /** XState swallows or defers what its callbacks throw: kept, and thrown by whoever drives. */
  private guarded(run: () => void): void {
    try {
      run()
    } catch (error) {
      this.fail(error)
    }
  }

  private fail(error: unknown): void {
    this.defect ??= error
  }

  // Driving

  /** Something happens: an actor goes on, or a stopped one still speaks. False if nobody has anything to say. */
  step(): boolean {
    if (this.stopped.length > 0 && this.random.chance(0.2)) return this.speakTooLate()
    const ready = [...this.effects].filter((effect) => this.isReady(effect))
    if (ready.length === 0) return false
    const advanced = this.advance(this.random.pick(ready))
    if (this.defect !== undefined) throw this.defect
    return advanced
  }

  private isReady({ mode, work }: Effect): boolean {
    if (mode === 'never') return false
    if (work.kind === 'settle') return this.random.chance(0.15)
    if (work.kind !== 'call' || work.input.phase !== 'awaiting') return true
    return work.input.expiresAt !== undefined && this.random.chance(0.3)
  }

  /** A verdict nobody waits for changes nothing, whichever way it comes. */
  private speakTooLate(): boolean {
    const [effect] = this.stopped.splice(this.random.below(this.stopped.length), 1)
    const verdict = effect && this.answerTo(effect)
    if (effect === undefined || verdict === undefined) return true
    this.seal()
    const before = [this.log.length, stateOf(this.snapshot())].join()
    if (this.random.chance(0.5)) effect.say(verdict)
    else this.send(verdict)
    const after = [this.log.length, stateOf(this.snapshot())].join()
    if (after !== before) throw new Error(`A stale ${verdict.type} moved the machine:\n${before}\n${after}`)
    this.noteLateResult(effect)
    return true
  }

  private noteLateResult({ work, begun, answered }: Effect): void {
    if (work.kind !== 'call' || work.input.phase !== 'executing' || !begun || answered) return
    const { turn, step, callId, run } = work.input
    this.write([{ type: 'tool/late-result', data: { turn, step, callId, run, outcome: 'Late' } }])
    this.seal()
    if (this.defect !== undefined) throw this.defect
  }

  /** Lets `steps` things happen, some of them people's doing. */
  drive(steps: number, people = 0.15): void {
    for (let i = 0; i < steps; i++) {
      if (this.random.chance(people)) this.send(anyCommand(this.random, this.snapshot().context))
      else this.step()
    }
  }

  /** The process dies: what is durable, and what was done, remains. */
  crash(): void {
    this.closing = true
    this.agent.stop()
    this.effects.clear()
  }

  /** A clean close with the turn open: running bodies may settle, nothing new starts. */
  suspend(): Past {
    this.closing = true
    for (const effect of this.effects) {
      const runs = effect.work.kind === 'call' && effect.work.input.phase === 'executing' && effect.begun
      if (!runs) this.effects.delete(effect)
    }
    for (let grace = 6; grace > 0 && this.effects.size > 0; grace--) this.step()
    this.send({ type: 'command.suspend' })
    const past = this.past
    this.crash()
    return past
  }

  /** Goes on until idle, by answers, else by people, at last by the time a cancel has to settle. */
  finish(): void {
    this.observed = false
    for (let steps = 0; this.snapshot().value !== 'idle'; steps++) {
      if (steps > 5000) throw new Error(`No end at ${stateOf(this.snapshot())}`)
      if (!this.step() && !this.step() && !this.step()) this.push()
    }
    if (this.effects.size > 0)
      throw new Error(`Effects left in idle: ${[...this.effects].map(({ work }) => nameOf(work))}`)
  }

  private push(): void {
    const { context } = this.snapshot()
    const reply = this.random.chance(0.7) ? anyReply(this.random, context) : undefined
    if (context.cancel !== null) this.settleNow()
    else this.send(reply ?? { type: 'command.cancel', cause: { kind: 'user' } })
  }

  private settleNow(): void {
    const settle = [...this.effects].find(({ work }) => work.kind === 'settle')
    if (settle === undefined) throw new Error(`Stuck at ${stateOf(this.snapshot())}`)
    this.advance(settle)
    if (this.defect !== undefined) throw this.defect
  }
}
