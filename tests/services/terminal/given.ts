/** A log to render: events put in their place, a millisecond apart unless a time is given. */
import type { NewEvent, SessionEvent } from '../../../src/log/events.ts'
import type { AssistantMessage, ToolResultMessage, UserMessage } from '../../../src/log/messages.ts'

const START = new Date(2026, 2, 1, 12, 0, 0, 0).getTime()

/** Places events from seq 0; `[event, ms]` stands that many ms after the start. */
export function placed(...events: readonly (NewEvent | readonly [NewEvent, number])[]): readonly SessionEvent[] {
  return events.map((entry, seq) => {
    const [event, ms] = 'type' in entry ? [entry, seq] : entry
    return { ...event, seq, time: START + ms }
  })
}

export const said = (text: string): UserMessage => ({
  id: 'm1',
  role: 'user',
  content: [{ type: 'text', text }],
  source: { kind: 'user' },
})

export const answered = (text: string): AssistantMessage => ({
  id: 'm2',
  role: 'assistant',
  content: [{ type: 'text', text }],
  source: { kind: 'model', provider: 'pawl', model: 'demo' },
})

export const result = (callId: string, text: string, isError = false): ToolResultMessage => ({
  id: `r-${callId}`,
  role: 'user',
  content: [
    { type: 'tool-result', toolCallId: callId, content: [{ type: 'text', text }], ...(isError ? { isError } : {}) },
  ],
  source: { kind: 'tool', callId },
})

const at = { turn: 1, step: 1 }

/** A turn with one call of read_file, which takes 12 ms and works, or fails as told. */
export function turnWithATool(failure?: { code: string; text: string }): readonly SessionEvent[] {
  const message = result('c1', failure?.text ?? 'hello', failure !== undefined)
  return placed(
    { type: 'turn/start', data: { turn: 1, limits: { maxSteps: 50, maxParallelToolCalls: 10 } } },
    { type: 'step/start', data: at },
    { type: 'user/message', data: said('what is this?') },
    { type: 'assistant/chunk', data: { ...at, attempt: 1, chunk: { type: 'text-delta', index: 0, text: 'Let me' } } },
    { type: 'assistant/chunk', data: { ...at, attempt: 1, chunk: { type: 'text-delta', index: 0, text: ' look.' } } },
    {
      type: 'assistant/message',
      data: {
        ...at,
        attempt: 1,
        message: answered('Let me look.'),
        finish: { kind: 'tool-calls' },
        calls: [{ callId: 'c1', name: 'read_file', mode: 'parallel' }],
        usage: { inputTokens: 10, outputTokens: 4 },
      },
    },
    { type: 'tool/call', data: { ...at, callId: 'c1', name: 'read_file', arguments: '{"path":"README.md"}' } },
    [{ type: 'tool/dispatch', data: { ...at, callId: 'c1', run: 1, onCrash: 'rerun' } }, 20],
    [
      {
        type: 'tool/result',
        data: { ...at, message, ...(failure ? { error: { name: 'ToolError', code: failure.code } } : {}) },
      },
      32,
    ],
    [{ type: 'step/end', data: { ...at, outcome: { kind: 'tool-calls' } } }, 33],
    [{ type: 'turn/end', data: { turn: 1, reason: { kind: 'completed' } } }, 34],
  )
}
