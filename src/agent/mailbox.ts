/** Commands from other processes: each taken once, in the append of what it recorded, or refused with its reason. */
import { isDeepStrictEqual } from 'node:util'
import { PawlError } from '../log/errors.ts'
import type { OnCrash } from '../log/events.ts'
import type { UserMessage } from '../log/messages.ts'
import type { Session } from '../log/session.ts'
import type { CommandOutcome, PostedCommand } from '../log/store.ts'
import type { AgentCommand, CancelCommand } from '../machines/commands.ts'
import type { ChartState } from '../machines/fold.ts'
import type { Clock } from '../services/clock.ts'
import { DuplicateMessage } from '../services/errors.ts'
import { toMessage } from '../services/input.ts'
import type { Mask } from '../services/masking/mask.ts'
import type { Approvals } from './approvals.ts'
import { checkedCause, checkedWords } from './checked.ts'

export interface MailboxOptions {
  readonly closing: { readonly begun: boolean }
  readonly mask: Mask
  readonly clock: Pick<Clock, 'now'>
  checkOwner(): void
  awake(): MailboxOwner
}

/** The agent at work, as its mailbox knows it. */
interface MailboxOwner {
  readonly session: Session
  readonly approvals: Approvals
  readonly state: ChartState
  /** Carries on a turn that was suspended while the agent slept. */
  raise(): void
  send(command: AgentCommand): void
  onCrashOf(callId: string): OnCrash
}

export interface Mailbox {
  /** The cancel of the open turn that was posted before opening: it is recorded with `session/resumed`, and taken there. */
  openingCancel(posted: readonly PostedCommand[]): OpeningCancel | undefined
  /** Into the batch in hand. */
  takeCancel(cancel: OpeningCancel): void
  /** Takes commands as they come, to their end; `onFailure` is told what the store throws. */
  serve(commands: AsyncIterable<PostedCommand>, onFailure: (error: unknown) => void): void
  /** Takes no more of them: one that is on its way waits for whoever serves next. */
  stop(): void
}

export interface OpeningCancel {
  readonly id: string
  readonly command: Pick<CancelCommand, 'cause' | 'keepInbox'>
}

type Decision = CommandOutcome | { readonly kind: 'accepted'; readonly command: AgentCommand }

const refused = (code: string, message: string): CommandOutcome => ({ kind: 'refused', code, message })

export const createMailbox = (options: MailboxOptions): Mailbox => new AgentMailbox(options)

/** A class, because an agent has one of each and a thousand agents share their methods. */
class AgentMailbox implements Mailbox {
  readonly #options: MailboxOptions
  /** Ids of commands; made with the first. */
  #handled: Set<string> | undefined
  #isStopped = false

  constructor(options: MailboxOptions) {
    this.#options = options
  }

  openingCancel(posted: readonly PostedCommand[]): OpeningCancel | undefined {
    const { value, context } = this.#options.awake().state
    const found = posted.find((one) => one.kind === 'cancel' && one.turn === context.turn)
    if (found?.kind !== 'cancel' || value === 'idle') return undefined
    const command = unlessRefused(() => ({
      cause: checkedCause(found.cause),
      ...(found.keepInbox ? { keepInbox: true } : {}),
    }))
    // One that cannot be is refused with the others, once the session is open.
    return 'kind' in command ? undefined : { id: found.id, command }
  }

  takeCancel({ id }: OpeningCancel): void {
    this.#isNew(id)
    this.#options.awake().session.take(id, { kind: 'taken' })
  }

  serve(commands: AsyncIterable<PostedCommand>, onFailure: (error: unknown) => void): void {
    const iterator = commands[Symbol.asyncIterator]()
    // One promise waits, and no suspended function with it: idle agents do little else.
    const take = ({ done, value }: IteratorResult<PostedCommand>): void => {
      if (this.#isStopped) return
      // There are no more commands for an owner that is one no more.
      if (done) this.#options.checkOwner()
      // What comes while the agent closes is left to the next owner.
      if (done || this.#options.closing.begun) return
      try {
        if (this.#isNew(value.id)) this.#handle(value)
        iterator.next().then(take, onFailure)
      } catch (error) {
        onFailure(error)
      }
    }
    iterator.next().then(take, onFailure)
  }

  stop(): void {
    this.#isStopped = true
  }

  /** Notes the id. */
  #isNew(id: string): boolean {
    this.#handled ??= new Set()
    const before = this.#handled.size
    return this.#handled.add(id).size > before
  }

  #handle(posted: PostedCommand): void {
    const owner = this.#options.awake()
    // What was suspended is carried on by itself first: the command happened in what follows.
    owner.raise()
    const { session } = owner
    const decision = unlessRefused(() => decide(this.#options, owner, posted))
    if (decision.kind !== 'accepted') {
      session.take(posted.id, decision)
      session.seal()
      return
    }
    // In hand before the command records: both are one append.
    session.take(posted.id, { kind: 'taken' })
    owner.send(decision.command)
    session.seal()
  }
}

function decide({ mask, clock }: MailboxOptions, owner: MailboxOwner, posted: PostedCommand): Decision {
  const { value, context } = owner.state
  switch (posted.kind) {
    case 'followup':
    case 'steer':
    case 'inject':
      return decideMessage(owner.session, mask, posted)
    case 'cancel':
      if (posted.turn === context.turn && value !== 'idle') {
        const keep = posted.keepInbox ? { keepInbox: true } : {}
        return accepted({ type: 'command.cancel', cause: checkedCause(posted.cause), turn: posted.turn, ...keep })
      }
      return posted.turn <= context.turn && value !== 'idle'
        ? refused('TURN_OVER', `Turn ${posted.turn} is over`)
        : refused(
            posted.turn <= context.turn ? 'TURN_OVER' : 'SESSION_IDLE',
            `Turn ${posted.turn} is not running: the session is idle`,
          )
    case 'approve':
    case 'deny': {
      const { callId, run } = posted
      const refusal = owner.approvals.refusal(context, posted, clock.now())
      if (refusal !== undefined) return refused(refusal.code, refusal.message)
      const words = checkedWords(posted)
      if (posted.kind === 'deny') return accepted({ type: 'command.deny', callId, run, ...words })
      const by = words.by === undefined ? {} : { by: words.by }
      return accepted({ type: 'command.approve', callId, run, onCrash: owner.onCrashOf(callId), ...by })
    }
    case 'wake':
      return accepted({ type: 'command.wake' })
    default:
      return refused('UNKNOWN_COMMAND', `This agent knows no command "${String((posted as PostedCommand).kind)}"`)
  }
}

const accepted = (command: AgentCommand): Decision => ({ kind: 'accepted', command })

type PostedMessage = Extract<PostedCommand, { readonly message: UserMessage }>

function decideMessage(session: Session, mask: Mask, { kind, message: posted }: PostedMessage): Decision {
  const message = toMessage(posted, posted.id, mask)
  const known = session.standingOf(message.id)
  if (known === undefined) return accepted({ type: `command.${kind}`, message })
  if (isDeepStrictEqual(known.message, message)) return { kind: 'taken', seq: known.seq }
  throw new DuplicateMessage(message.id)
}

/** Another process sent it, of whatever shape: what its checks throw is why it is refused. */
function unlessRefused<T>(decide: () => T): T | CommandOutcome {
  try {
    return decide()
  } catch (thrown) {
    const code = thrown instanceof PawlError ? thrown.code : 'INVALID_EVENT'
    return refused(code, thrown instanceof Error ? thrown.message : String(thrown))
  }
}
