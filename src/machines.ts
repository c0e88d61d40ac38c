/** `pawl/machines`: the chart itself, the fold of a log, and agents as actors. */
export {
  type AgentActorLogic,
  type AgentActorSnapshot,
  type AgentCommand,
  type AgentEmitted,
  type AgentState,
  agentActor,
  turnActor,
} from './agent/actor.ts'
export { type AgentEvent, agentMachine } from './machines/agent.ts'
export type { AgentContext, Call } from './machines/evolve.ts'
export { type AgentSnapshot, fold, stateName } from './machines/fold.ts'
export { type Verified, type Violation, verify } from './machines/verify.ts'
