/** A mistake in the chart is expected by a path too: it is found by the words of the inputs. */
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import type { PathInput } from '../../src/testing/path-input.ts'
import { createLane, type Lane, playOn } from '../../src/testing/play.ts'
import { ANSWERED, ASKED, byHand } from './by-hand.ts'

type Mistake = 'a reason is ignored' | 'a kept inbox is emptied' | 'a failure is a refusal' | 'a steer waits its turn'

const mistake = vi.hoisted((): { now: Mistake | undefined } => ({ now: undefined }))

vi.mock('../../src/machines/records.ts', async (original) => {
  const own = await original<typeof import('../../src/machines/records.ts')>()
  const stop: typeof own.stop = (context, { reason, ...verdict }) =>
    own.stop(context, mistake.now === 'a reason is ignored' || !reason ? verdict : { ...verdict, reason })
  const cancel: typeof own.cancel = (context, { cause, ...more }, next) =>
    own.cancel(context, mistake.now === 'a kept inbox is emptied' ? { cause } : { cause, ...more }, next)
  const enterStep: typeof own.enterStep = (context, decision) => {
    const isRefused = mistake.now === 'a failure is a refusal' && decision.kind === 'failed'
    return own.enterStep(context, isRefused ? { kind: 'reject' } : decision)
  }
  const deliver: typeof own.deliver = (context, command) =>
    own.deliver(context, mistake.now === 'a steer waits its turn' ? { ...command, type: 'command.followup' } : command)
  return { ...own, stop, cancel, enterStep, deliver }
})

let lane: Lane

beforeAll(async () => {
  lane = await createLane()
})

afterAll(() => lane[Symbol.asyncDispose]())

afterEach(() => {
  mistake.now = undefined
})

const first: PathInput = { type: 'followup', id: 'm1' }

test.each([
  ['a reason is ignored', [...ASKED, ...ANSWERED.slice(0, 1), { type: 'stopping', decision: 'stop' }], 3],
  ['a kept inbox is emptied', [first, { type: 'cancel', keepInbox: true }, { type: 'prepared', decision: 'enter' }], 1],
  ['a failure is a refusal', [first, { type: 'prepared', decision: 'fail' }], 1],
  ['a steer waits its turn', [...ASKED, { type: 'steer', id: 'm2' }], 2],
] as const)('%s', async (now, inputs, step) => {
  mistake.now = now
  const path = byHand(now, inputs as readonly PathInput[])
  const what = 'what the input must bring about and the log'
  await expect(playOn(lane, path)).rejects.toMatchObject({ what, step })
})

test('without a mistake nothing is missing', async () => {
  const path = byHand('a plain turn', [...ASKED, ...ANSWERED])
  expect((await playOn(lane, path)).ends).toEqual(['completed'])
})
