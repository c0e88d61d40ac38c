/** The order of roles as a server takes it: messages in a row as one, and words of the model where some must stand. */
import type { Dialect } from './dialect.ts'
import type { WireMessage } from './wire-message.ts'

/** The messages in an order that the dialect takes; nothing anybody said is lost. */
export function ordered(messages: readonly WireMessage[], dialect: Dialect): readonly WireMessage[] {
  const { mergeUsers = false, mergeAnswers = false, afterResults } = dialect
  const out: WireMessage[] = []
  for (const message of messages) {
    const last = out.at(-1)
    const merged = (mergeUsers && asOneUser(last, message)) || (mergeAnswers && asOneAnswer(last, message)) || undefined
    if (merged !== undefined) out.splice(-1, 1, merged)
    else if (afterResults !== undefined && last?.role === 'tool' && message.role === 'user') {
      out.push({ role: 'assistant', content: afterResults }, message)
    } else out.push(message)
  }
  return out
}

function asOneUser(last: WireMessage | undefined, next: WireMessage): WireMessage | undefined {
  if (last?.role !== 'user' || next.role !== 'user') return undefined
  return { role: 'user', content: joined(last.content, next.content) }
}

/** An answer with calls has its results behind it, so only the second of two can have any. */
function asOneAnswer(last: WireMessage | undefined, next: WireMessage): WireMessage | undefined {
  if (last?.role !== 'assistant' || next.role !== 'assistant' || last.tool_calls !== undefined) return undefined
  const both = Object.keys(next).filter((key) => key !== 'role' && last[key] !== undefined)
  return { ...last, ...next, ...Object.fromEntries(both.map((key) => [key, together(last[key], next[key])])) }
}

/** Texts, and lists of details, of two answers; of anything else, what the second one has. */
function together(before: unknown, after: unknown): unknown {
  if (Array.isArray(before) && Array.isArray(after)) return [...before, ...after]
  return typeof before === 'string' && typeof after === 'string' ? joined(before, after) : (after ?? before)
}

const joined = (...texts: readonly string[]): string => texts.filter((text) => text !== '').join('\n\n')
