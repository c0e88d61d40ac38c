/** Pawl: a durable agent runtime. An LLM agent as an XState statechart over an append-only log. */
export { agentActor, turnActor } from './agent/actor.ts'
export { type ResumedSession, type ResumeOptions, resumeAll } from './agent/resume-all.ts'
export {
  type Agent,
  type AgentOptions,
  type ApproveOptions,
  type CloseOptions,
  createAgent,
  type DeliverOptions,
  type DenyOptions,
  type Entered,
  type Inbox,
  type Limits,
  type PendingApproval,
  type Plugin,
  type Receipt,
  type SessionView,
  type TurnResult,
} from './agent.ts'
export {
  Fenced,
  ForkRefused,
  InvalidEvent,
  InvalidLog,
  LogTooNew,
  NotJson,
  PawlError,
  SeqConflict,
  SessionBusy,
  SessionNotFound,
  StoreFailure,
  type StoreFailureReason,
  TooLarge,
} from './log/errors.ts'
export type { CancelCause, InboxItem, Limit, Queue, SessionEvent, StepOutcome, TurnEndReason } from './log/events.ts'
export type { Json } from './log/json.ts'
export type {
  AssistantMessage,
  ContentBlock,
  FinishReason,
  LlmFailure,
  Message,
  StreamChunk,
  TokenUsage,
  ToolResultMessage,
  UserMessage,
} from './log/messages.ts'
export type { LlmCallConfig, LlmRequest, ToolSchema } from './log/requests.ts'
export type { Clock } from './services/clock.ts'
export {
  AgentClosed,
  ApprovalRefused,
  DuplicateMessage,
  HookMisuse,
  InvalidOption,
  LlmError,
  MessageDropped,
  Overloaded,
} from './services/errors.ts'
export type {
  AgentStatus,
  Hooks,
  Next,
  PostExecute,
  PreExecute,
  PreStep,
  Prompt,
} from './services/hooks/contract.ts'
export type { Backoff, ModelAdapter, PreparedCall, RetryPolicy } from './services/llm/adapter.ts'
export type { Section } from './services/llm/sections.ts'
export type {
  Input,
  ProbeAnswer,
  ProbeContext,
  Tool,
  ToolCallInfo,
  ToolContext,
  ToolOutcome,
} from './services/tools/contract.ts'
export { type Args, type ToolDefinition, tool } from './services/tools/tool.ts'
export { type WorkspaceOptions, workspaceTools } from './services/tools/workspace/workspace-tools.ts'
