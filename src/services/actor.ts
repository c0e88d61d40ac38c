/** A service as an actor of the chart: it runs once, and says one verdict unless it was stopped first. */

import type { AnyActorRef } from 'xstate'
import { type EventObject, fromCallback } from 'xstate'
import { ABORTED } from '../log/aborted.ts'
import { LazyAbort } from '../log/lazy-abort.ts'
import type { LlmFailure } from '../log/messages.ts'
import { failureOf } from './llm/failure.ts'
import { type AgentRuntime, runtimeOf } from './runtime.ts'
import type { Verdict } from './verdicts.ts'

/** A signal that is made when somebody asks for it. */
export interface Stopped {
  readonly aborted: boolean
  readonly signal: AbortSignal
}

export interface Service<Input> {
  readonly input: Input
  readonly runtime: AgentRuntime
  /** The chart no longer waits for this actor: what it would say would be dropped. */
  readonly stopped: Stopped
}

/**
 * `run` begins after a pause of one microtask, so that a command given by an observer comes first. What it throws
 * becomes the verdict that `failed` makes of it. While the agent closes nothing begins, and only what `outlives` that
 * still speaks.
 */
export const serviceActor = <Input extends { readonly agent: AnyActorRef }>(
  run: (service: Service<Input>) => Promise<Verdict | undefined>,
  failed: (input: Input, failure: LlmFailure, thrown: unknown) => Verdict,
  outlives: (input: Input) => boolean = () => false,
) =>
  fromCallback<EventObject, Input>(({ input, sendBack }) => {
    const runtime = runtimeOf(input.agent)
    const stopped = new LazyAbort()
    const settle = async (): Promise<void> => {
      await Promise.resolve()
      if (stopped.aborted || runtime.closing.aborted) return
      const verdict = await run({ input, runtime, stopped }).catch((thrown: unknown) => {
        // A store that failed ends the agent; it is not an outcome of this actor. Nor is what nobody waits for.
        if (runtime.session.failed.aborted || stopped.aborted) return undefined
        const verdict = failed(input, failureOf(thrown), thrown)
        // What fails a call is its result; `agent/error` tells what ended the turn.
        if (!('callId' in verdict)) runtime.noteError(thrown)
        return verdict
      })
      const mute = stopped.aborted || (runtime.closing.aborted && !outlives(input))
      if (verdict !== undefined && !mute) sendBack(verdict)
    }
    void settle()
    return () => stopped.abort(ABORTED)
  })
