/** `pawl/log`: the log, the stores that keep it, and what can be derived from it. */
export type { SessionView } from './agent/agent.ts'
export { deriveMessages } from './log/derive.ts'
export {
  type EventMap,
  type EventType,
  isMoving,
  type KnownEvent,
  MAX_EVENT_BYTES,
  type NewEvent,
  type SessionEvent,
} from './log/events.ts'
export { checkInvariants, type Violation } from './log/invariants.ts'
export { canonicalJson, type Json, toJson } from './log/json.ts'
export { rebuildRequest } from './log/rebuild.ts'
export type {
  AppendOptions,
  Checkpoint,
  Command,
  CommandOutcome,
  LogStore,
  Ownership,
  PostedCommand,
  SessionHeader,
  SessionSummary,
  StoredPage,
  SummaryUpdate,
} from './log/store.ts'
export { memoryStore } from './log/stores/memory.ts'
export { sqliteStore } from './log/stores/sqlite.ts'
