/** All benchmarks, in the order in which they are told. */
import { answer } from './benchmarks/answer.mjs'
import { bytes } from './benchmarks/bytes.mjs'
import { chat } from './benchmarks/chat.mjs'
import { firstToken } from './benchmarks/first-token.mjs'
import { idle } from './benchmarks/idle.mjs'
import { processes } from './benchmarks/processes.mjs'
import { reopen } from './benchmarks/reopen.mjs'
import { sessions } from './benchmarks/sessions.mjs'
import { slowDisk } from './benchmarks/slow-disk.mjs'
import { sse } from './benchmarks/sse.mjs'
import { sseMemory } from './benchmarks/sse-memory.mjs'
import { steps } from './benchmarks/steps.mjs'
import { streams } from './benchmarks/streams.mjs'

/** By name. @type {Readonly<Record<string, import('./harness/table.mjs').Benchmark>>} */
export const benchmarks = {
  steps,
  chat,
  answer,
  sse,
  'sse-memory': sseMemory,
  'first-token': firstToken,
  reopen,
  bytes,
  idle,
  sessions,
  'slow-disk': slowDisk,
  streams,
  processes,
}
