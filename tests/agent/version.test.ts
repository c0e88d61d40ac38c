import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { chartHash, VERSION } from '../../src/agent/chart-hash.ts'
import { gate, pause, scripted, text } from '../../src/services/adapters/scripted.ts'
import { ofType, startAgent } from '../kit/agents.ts'

test('a resumed session says by which version and chart; the version is the package’s', async () => {
  expect(VERSION).toBe(JSON.parse(readFileSync('package.json', 'utf8')).version)
  const held = gate()
  const first = await startAgent({ model: scripted([[text('half'), pause(held)]]) })
  first.agent.followup('hi')
  await held.reached
  await using again = await startAgent({ store: first.store, steal: true, model: scripted(['whole']) })
  await again.agent.whenIdle()
  const [resumed] = ofType(await again.log(), 'session/resumed')
  expect(resumed?.data).toMatchObject({ version: VERSION, chart: chartHash })
})

test('the chart’s hash is the same from source and from the build', async () => {
  const built: { chartHash: string } = await import('../../dist/agent/chart-hash.js' as string)
  expect(chartHash).toBe(built.chartHash)
})
