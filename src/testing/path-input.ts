/**
 * The words paths are made of: everything that can happen to an agent from outside its chart. An input is data, so that
 * a path can be printed, kept in a file and played again.
 */

/** What a call of a path is answered with by its tool. `adds` also adds a message to the conversation. */
export type CallOutcome = 'ok' | 'error' | 'concludes' | 'adds'

/** Which actor of the chart throws: XState's own error event. A call is named by its id. */
export type FailingActor = 'prepareStep' | 'askModel' | 'wait' | 'stopTurn' | { readonly callId: string }

/** One call that the model of a path asks for. */
export interface PathCall {
  readonly callId: string
  readonly tool: string
}

export type PathInput =
  // What people do. A message is named by its id, which is its text too.
  | { readonly type: 'followup' | 'steer' | 'inject'; readonly id: string }
  | { readonly type: 'cancel'; readonly keepInbox?: true }
  | { readonly type: 'approve' | 'deny'; readonly callId: string; readonly run: number }
  | { readonly type: 'remove'; readonly id: string }
  | { readonly type: 'clear' | 'wake' }
  // What the process suffers. After each of these the session is opened again.
  /** The process dies. With `cancel`, somebody posted a cancel of the open turn before it was opened again. */
  | { readonly type: 'crash'; readonly recovery: 'continue' | 'interrupt'; readonly cancel?: true }
  /** A clean close that leaves the turn open. */
  | { readonly type: 'suspend' }
  /** The rest of the path happens to a fork of the log as it is, opened in the place of the session. */
  | { readonly type: 'fork' }
  // What the agent's surroundings answer.
  /** `agent/pre-step`: with what was proposed, with no message, no, or by throwing. */
  | {
      readonly type: 'prepared'
      readonly decision: 'enter' | 'enter-none' | 'reject' | 'fail'
      /** Ids of what enters, where a real hook let in other messages than were proposed. */
      readonly entered?: readonly string[]
    }
  /** The model's whole answer. `limited`: it reaches a limit on tokens. */
  | {
      readonly type: 'answered'
      readonly finish: 'stop' | 'max-tokens' | 'tool-calls'
      readonly calls: readonly PathCall[]
      readonly limited?: true
    }
  /** The model says its first words, and not yet its last. */
  | { readonly type: 'speaks' }
  /** The request fails: in a way that may be tried again, or for good. `agent/request-error` is asked. */
  | { readonly type: 'request-fails'; readonly retryable: boolean }
  /** `agent/request-error`: by default it leaves it to the policy. */
  | { readonly type: 'error-handled'; readonly decision?: 'retry' | 'give-up' | 'fail' }
  /** The time of a planned retry has come. */
  | { readonly type: 'waited' }
  /** `tools/pre-execute`. */
  | { readonly type: 'allowed' | 'asked'; readonly callId: string }
  /** `added`: ids of the messages that a real `tools/post-execute` added. */
  | { readonly type: 'denied'; readonly callId: string; readonly added?: readonly string[] }
  /** The tool's body settles, and `tools/post-execute` decides: by default it accepts. */
  | {
      readonly type: 'settled'
      readonly callId: string
      readonly outcome: CallOutcome
      readonly judged?: 'block' | 'fail'
      /** Ids of the messages that it added, where it was a real one. */
      readonly added?: readonly string[]
    }
  /** Nobody answered the question in time. */
  | { readonly type: 'expired'; readonly callId: string }
  /** The probe of a call that was running at a crash. */
  | { readonly type: 'probed'; readonly callId: string; readonly answer: 'done' | 'not-done' | 'unknown' }
  /** `agent/turn-stopping`: nothing to say, a reason of its own, or by throwing. */
  | { readonly type: 'stopping'; readonly decision: 'none' | 'stop' | 'fail' }
  /** The time that a cancel has to settle is over. */
  | { readonly type: 'settle-timeout' }
  | { readonly type: 'actor-fails'; readonly actor: FailingActor }
