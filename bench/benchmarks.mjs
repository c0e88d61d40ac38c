/** All benchmarks, in the order in which they are told. */
import { answer } from './benchmarks/answer.mjs'
import { chat } from './benchmarks/chat.mjs'
import { sse } from './benchmarks/sse.mjs'
import { sseMemory } from './benchmarks/sse-memory.mjs'
import { steps } from './benchmarks/steps.mjs'

/** By name. @type {Readonly<Record<string, import('./harness/table.mjs').Benchmark>>} */
export const benchmarks = { steps, chat, answer, sse, 'sse-memory': sseMemory }
