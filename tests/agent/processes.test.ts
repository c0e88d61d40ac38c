/** Agents in processes of their own, on one file: killed, answered and cancelled from elsewhere, and carried on. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test, vi } from 'vitest'
import type { Command, CommandOutcome, LogStore } from '../../src/log/store.ts'
import { ofType, stored, typesOf } from '../kit/agents.ts'
import { type Child, childOf, newFile, newFolder, storeOn } from '../log/stores/sqlite-fixtures.ts'

vi.setConfig({ testTimeout: 90_000 })

const script = fileURLToPath(new URL('./agent-child.mjs', import.meta.url))
const child = (task: string, path: string): Child => childOf(script, [task, path])

let posts = 0
/** Leaves a command from this process; what became of it. */
async function post(store: LogStore, command: Command): Promise<{ outcome: Promise<CommandOutcome> }> {
  const id = `command-${++posts}`
  await store.post('s', { id, ...command })
  return { outcome: store.outcome('s', id, AbortSignal.timeout(60_000)) }
}

const answer = (kind: 'approve' | 'deny', digest: string): Command => ({
  kind,
  callId: 'c1',
  run: 0,
  digest,
  by: 'ann',
})

test('an approval asked by a process that was killed is answered from another one, and the next one acts on it', async () => {
  const path = newFile()
  const asking = child('ask', path)
  const digest = String(await asking.hears('asked'))
  await asking.kill()
  const here = storeOn(path)
  const wrong = await post(here, answer('approve', 'sha256:of something else'))
  const right = await post(here, answer('approve', digest))
  const second = await post(here, answer('deny', digest))
  const next = child('finish', path)
  expect(await wrong.outcome).toMatchObject({ kind: 'refused', code: 'APPROVAL_DIGEST_MISMATCH' })
  expect(await right.outcome).toMatchObject({ kind: 'taken' })
  expect(await second.outcome).toMatchObject({ kind: 'refused', code: 'APPROVAL_ALREADY_RESOLVED' })
  await next.hears('idle')
  expect(next.told.filter((fact) => 'paid' in fact)).toHaveLength(1)
  expect(await next.ended).toBe(0)
  // The call is over, and there never was another: who comes later is told so by whoever opens the session next.
  const late = await post(here, answer('approve', digest))
  const unknown = await post(here, { kind: 'approve', callId: 'c2', run: 0, digest })
  const last = child('finish', path)
  expect(await late.outcome).toMatchObject({ kind: 'refused', code: 'APPROVAL_ALREADY_RESOLVED' })
  expect(await unknown.outcome).toMatchObject({ kind: 'refused', code: 'APPROVAL_NOT_PENDING' })
  await last.ended
  const log = await stored(here, 's')
  expect(ofType(log, 'tool/approval-resolved')).toMatchObject([{ data: { decision: 'approved', by: 'ann' } }])
  expect(ofType(log, 'tool/dispatch')).toHaveLength(1)
  expect(ofType(log, 'session/resumed')).toMatchObject([{ data: { resumes: 0 } }])
  expect(ofType(log, 'turn/end')).toMatchObject([{ data: { reason: { kind: 'completed' } } }])
})

test('a denial from another process is the result the model sees, whoever is killed after it', async () => {
  const path = newFile()
  const asking = child('ask', path)
  const digest = String(await asking.hears('asked'))
  const here = storeOn(path)
  expect(await (await post(here, answer('deny', digest))).outcome).toMatchObject({ kind: 'taken' })
  await asking.kill()
  const next = child('finish', path)
  await next.ended
  const log = await stored(here, 's')
  expect(ofType(log, 'tool/approval-resolved')).toMatchObject([{ data: { decision: 'denied' } }])
  expect(ofType(log, 'tool/result')).toHaveLength(1)
  expect(ofType(log, 'tool/result')[0]?.data.error?.code).not.toBe('TOOL_OUTCOME_UNKNOWN')
  expect(asking.told.concat(next.told).some((fact) => 'paid' in fact)).toBe(false)
})

// Told by a clock, on a machine that others use as well: the best of a few tries counts.
test('a cancel from another process reaches a running turn within 250 ms', { retry: 4 }, async () => {
  const path = newFile()
  const digging = child('dig', path)
  await digging.hears('digging')
  const here = storeOn(path)
  // Opening the file here, which is no part of the way, is over after this.
  const early = await post(here, { kind: 'cancel', turn: 2, cause: { kind: 'user' } })
  expect(await early.outcome).toMatchObject({ kind: 'refused', code: 'SESSION_IDLE' })
  const at = Date.now()
  const { outcome } = await post(here, { kind: 'cancel', turn: 1, cause: { kind: 'user' } })
  const [told, reason] = [await outcome, await digging.hears('ended')]
  const ms = Number(digging.told.find((fact) => 'at' in fact)?.at) - at
  console.info(`cancelled from another process after ${ms} ms`)
  expect(told).toMatchObject({ kind: 'taken' })
  expect(reason).toEqual({ kind: 'aborted', cause: { kind: 'user' } })
  expect(ms).toBeLessThan(250)
  const again = await post(here, { kind: 'cancel', turn: 1, cause: { kind: 'user' } })
  expect(await again.outcome).toMatchObject({ kind: 'refused', code: 'TURN_OVER' })
})

test('a cancel left for a killed owner is recorded before session/resumed, and ends the turn with nothing started', async () => {
  const path = newFile()
  const digging = child('dig', path)
  await digging.hears('digging')
  await digging.kill()
  const here = storeOn(path)
  const { outcome } = await post(here, { kind: 'cancel', turn: 1, cause: { kind: 'user' } })
  const head = (await stored(here, 's')).length
  const next = child('finish', path)
  expect(await outcome).toEqual({ kind: 'taken', seq: head })
  await next.hears('idle')
  const log = await stored(here, 's')
  expect(typesOf(log.slice(head))).toEqual(['turn/cancel', 'session/resumed', 'tool/result', 'step/end', 'turn/end'])
  expect(next.told.some((fact) => 'digging' in fact)).toBe(false)
})

test('under the default flags of Node a store that fails ends no process: no rejection is left unhandled', async () => {
  const path = newFile()
  const fallback = join(newFolder(), 'unsaved')
  const failing = spawn(process.execPath, [script, 'fill', path, fallback], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  let err = ''
  failing.stderr?.setEncoding('utf8').on('data', (text: string) => {
    err += text
  })
  const facts: unknown[] = []
  failing.on('message', (fact) => facts.push(fact))
  const [code] = await once(failing, 'exit')
  expect({ code, facts, err }).toEqual({ code: 0, facts: [{ failed: true }], err: expect.stringContaining(fallback) })
  expect(err).not.toMatch(/unhandled|rejection/i)
  expect(readdirSync(fallback)).toHaveLength(1)
})
