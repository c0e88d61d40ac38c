import pc from 'picocolors'
import { expect, test } from 'vitest'
import type { NewEvent } from '../../../src/log/events.ts'
import { eventLines } from '../../../src/services/terminal/event-list.ts'
import { placed, turnWithATool } from './given.ts'

const plain = pc.createColors(false)

async function lines(events: Parameters<typeof eventLines>[0]): Promise<string[]> {
  const found: string[] = []
  for await (const line of eventLines(events, plain)) found.push(line)
  return found
}

test('a log reads as an indented list, chunks folded to a count', async () => {
  expect(await lines(turnWithATool())).toEqual([
    '    0  12:00:00.000  turn/start  turn 1',
    '    1  12:00:00.001    step/start  step 1',
    '    2  12:00:00.002      user/message  user: what is this?',
    '    3  12:00:00.003      assistant/chunk  to seq 4, 2 chunks, attempt 1',
    '    5  12:00:00.005      assistant/message  tool-calls, 1 call, 10 in + 4 out: Let me look.',
    '    6  12:00:00.006      tool/call  c1 read_file path=README.md',
    '    7  12:00:00.020      tool/dispatch  c1 run 1, onCrash rerun',
    '    8  12:00:00.032      tool/result  c1 ok: hello',
    '    9  12:00:00.033    step/end  step 1: tool-calls',
    '   10  12:00:00.034  turn/end  turn 1: completed',
  ])
})

test('the chunks of two attempts are counted apart', async () => {
  const chunk = (attempt: number): NewEvent => ({
    type: 'assistant/chunk',
    data: { turn: 1, step: 1, attempt, chunk: { type: 'text-delta', index: 0, text: 'x' } },
  })
  expect(await lines(placed(chunk(1), chunk(1), chunk(2)))).toEqual([
    '    0  12:00:00.000  assistant/chunk  to seq 1, 2 chunks, attempt 1',
    '    2  12:00:00.002  assistant/chunk  1 chunk, attempt 2',
  ])
})

test('an empty log has no lines', async () => {
  expect(await lines([])).toEqual([])
})

test('an event of a plug-in is listed by its type', async () => {
  const [note] = placed({ type: 'session/suspended', data: {} })
  expect(await lines([note!])).toEqual(['    0  12:00:00.000  session/suspended'])
})
