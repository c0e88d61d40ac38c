/** What the outside asks of the chart. A command records; only what it recorded moves the machine. */
import type { CancelCause, EventMap, OnCrash } from '../log/events.ts'
import type { UserMessage } from '../log/messages.ts'

export type CancelCommand = {
  readonly type: 'command.cancel'
  readonly cause: CancelCause
  readonly keepInbox?: boolean
  /** The turn it is for; refused when that is over. Absent: whatever is open, or the queues when idle. */
  readonly turn?: number
}

export type AgentCommand =
  | { readonly type: 'command.followup' | 'command.steer' | 'command.inject'; readonly message: UserMessage }
  | CancelCommand
  | {
      readonly type: 'command.approve'
      readonly callId: string
      readonly run: number
      /** What the live tool says of a crash: logged with the dispatch. */
      readonly onCrash: OnCrash
      readonly by?: string
    }
  | {
      readonly type: 'command.deny'
      readonly callId: string
      readonly run: number
      readonly reason?: string
      readonly by?: string
    }
  /** Takes a waiting message out of its queue, or puts another in its place. */
  | { readonly type: 'command.remove'; readonly id: string; readonly replacement?: UserMessage }
  | { readonly type: 'command.clear' }
  | { readonly type: 'command.wake' }
  /** A log that is not at rest was opened. A posted cancel of the open turn comes first, in the same batch. */
  | {
      readonly type: 'command.resume'
      readonly resumed: EventMap['session/resumed']
      readonly cancel?: Pick<CancelCommand, 'cause' | 'keepInbox'>
    }
  | { readonly type: 'command.suspend' }
