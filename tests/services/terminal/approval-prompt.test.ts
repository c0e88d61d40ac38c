import { PassThrough } from 'node:stream'
import pc from 'picocolors'
import { expect, test } from 'vitest'
import { type AskedCall, approvalQuestion, askApproval, isYes } from '../../../src/services/terminal/approval-prompt.ts'

const plain = pc.createColors(false)
const call: AskedCall = { callId: 'c1', name: 'run_command', arguments: '{"command":"npm test"}', purpose: 'run' }

async function ask(typed: string | null, signal = new AbortController().signal): Promise<boolean | undefined> {
  const input = new PassThrough()
  const answer = askApproval(call, plain, { input, output: new PassThrough(), signal })
  if (typed === null) input.end()
  else input.write(typed)
  return answer
}

test('the question shows the tool and its arguments in full', () => {
  expect(approvalQuestion(call, plain)).toBe(
    '? run_command wants to run.\n    {\n      "command": "npm test"\n    }\n  Allow it? (y/N) ',
  )
})

test('a call that may have taken effect says so', () => {
  expect(approvalQuestion({ ...call, purpose: 'rerun' }, plain)).toContain('may have taken effect')
})

test('only a clear yes is a yes', () => {
  expect(['y', 'Y', ' yes '].map(isYes)).toEqual([true, true, true])
  expect(['', 'n', 'no', 'yep', 'yes please', 'ny'].map(isYes)).toEqual([false, false, false, false, false, false])
})

test('a typed yes allows it, an empty line does not', async () => {
  expect(await ask('y\n')).toBe(true)
  expect(await ask('\n')).toBe(false)
})

test('the end of input is no answer: a lost terminal denies nothing', async () => {
  expect(await ask(null)).toBeUndefined()
})

test('a question that was answered elsewhere is withdrawn', async () => {
  const withdrawn = new AbortController()
  const asked = ask('', withdrawn.signal)
  withdrawn.abort(new Error('answered elsewhere'))
  await expect(asked).rejects.toThrow()
})
