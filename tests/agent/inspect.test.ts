import { expect, test } from 'vitest'
import type { InspectionEvent } from 'xstate'
import { fold, stateName } from '../../src/machines/fold.ts'
import { startAgent } from '../kit/agents.ts'

test('an inspector is told of the actor, then one event and one snapshot for each durable event', async () => {
  const told: InspectionEvent[] = []
  await using started = await startAgent({ inspect: (event) => told.push(event) })
  await started.agent.run('hi')
  const log = await started.log()
  expect(told[0]?.type).toBe('@xstate.actor')
  const events = told.filter((event) => event.type === '@xstate.event')
  expect(events.map(({ event }) => event)).toEqual(log)
  const snapshots = told.filter((event) => event.type === '@xstate.snapshot')
  const seen = snapshots.map(({ snapshot }) => stateName(snapshot as unknown as ReturnType<typeof fold>))
  expect(seen).toEqual(log.map((_, i) => stateName(fold(log.slice(0, i + 1)))))
})

test('an inspector that throws changes no outcome', async () => {
  const warned = new Promise<Error>((resolve) => process.once('warning', resolve))
  await using started = await startAgent({
    inspect: () => {
      throw new Error('broken inspector')
    },
  })
  expect((await started.agent.run('hi')).reason).toEqual({ kind: 'completed' })
  expect((await warned).message).toContain('broken inspector')
})
