/** What the chart hands to each of its actors. `agent` is the chart's own ref: the key to its ports. */
import type { AnyActorRef } from 'xstate'
import type { TurnEndReason } from '../log/events.ts'
import type { UserMessage } from '../log/messages.ts'
import type { CallPhase, OfAttempt, OfStep } from './verdicts.ts'

type OfAgent = { readonly agent: AnyActorRef }

/** `step` is the one proposed; `messages` are those claimed for it. */
export type PrepareStepInput = OfAgent & OfStep & { readonly messages: readonly UserMessage[] }

/** What is known of a retry chain that this attempt belongs to. */
export type RetryChain = {
  readonly retryId: string
  readonly provider: string
  readonly policyKey: string
  readonly retry: number
}

export type AskModelInput = OfAgent & OfAttempt & { readonly chain: RetryChain | null }

/** Wait until `at + delayMs` (epoch ms), and never longer than `delayMs`. */
export type WaitInput = OfAgent & OfAttempt & { readonly at: number; readonly delayMs: number }

export type CallInput = OfAgent &
  OfStep & {
    readonly callId: string
    readonly name: string
    readonly arguments: string
    readonly phase: CallPhase
    readonly run: number
    /** Of the dispatch that a crash cut short: what the log allows. */
    readonly onCrash?: 'unknown' | 'rerun' | 'ask' | 'probe'
    readonly expiresAt?: number
  }

/** `reason` is how the turn would end. */
export type StopTurnInput = OfAgent & OfStep & { readonly reason: TurnEndReason }
