/** `pawl/testing`: paths generated from the chart, and a player that holds a real agent to them. */
export type { Budget } from './testing/budget.ts'
export { allTransitions, applyInput, beginLoop } from './testing/closed-loop.ts'
export type { HookVerdicts } from './testing/offers.ts'
export type { AgentPath, PathSetup, PathStep, PathTool } from './testing/path.ts'
export type { CallOutcome, FailingActor, PathCall, PathInput } from './testing/path-input.ts'
export { type AbstractTool, type AgentPathsOptions, agentPaths, type PathToolOptions } from './testing/paths.ts'
