/** `pawl/testing`: paths generated from the chart, and a player that holds a real agent to them. */
export type { Budget } from './testing/budget.ts'
export { type Applied, allTransitions, applyInput, beginLoop, type OnTransition } from './testing/closed-loop.ts'
export { InputRefused, type LoopState } from './testing/loop-state.ts'
export type { AgentPath, PathEvent, PathSetup, PathStep, PathTool } from './testing/path.ts'
export type { CallOutcome, FailingActor, PathCall, PathInput } from './testing/path-input.ts'
export type { AbstractTool, AgentPathsOptions, PathToolOptions } from './testing/path-options.ts'
export { agentPaths } from './testing/paths.ts'
export {
  type LaneStore,
  type OwnOptions,
  PathMismatch,
  type PlayedPath,
  type PlayManyOptions,
  type PlayOptions,
  playPath,
  playPaths,
} from './testing/play.ts'
export type { HookVerdicts } from './testing/verdicts.ts'
