/** The chart with its real actors, provided once for all agents of the process, and the actor that runs it for one of them. */
import { type ActorRefFrom, type AnyActorRef, createActor } from 'xstate'
import type { agentMachine } from '../machines/agent.ts'
import { type ChartState, restoreState } from '../machines/fold.ts'
import { type ChartPorts, provideEffects } from '../machines/live.ts'
import { askModel } from '../services/ask-model.ts'
import { prepareStep } from '../services/prepare-step.ts'
import { call } from '../services/run-call.ts'
import { type AgentRuntime, bindRuntime } from '../services/runtime.ts'
import { stopTurn } from '../services/stop-turn.ts'
import { wait } from '../services/wait.ts'

export type AgentRef = ActorRefFrom<typeof agentMachine>

const portsOf = new WeakMap<AnyActorRef, ChartPorts>()

function findPorts(agent: AnyActorRef): ChartPorts {
  const ports = portsOf.get(agent)
  if (ports === undefined) throw new Error('This agent has no log: start it with createAgent or agentActor')
  return ports
}

const liveMachine = provideEffects(findPorts, { prepareStep, askModel, wait, call, stopTurn })

/** An actor that is in `state` and has no children; what it is sent waits until it is started. */
export function createChart(state: ChartState, ports: ChartPorts, runtime: AgentRuntime): AgentRef {
  const actor = createActor(liveMachine, { snapshot: restoreState(state) })
  portsOf.set(actor, ports)
  bindRuntime(actor, runtime)
  return actor
}
