/** A lane leaves nothing on the disk, also when its store cannot be opened or closed. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { LogStore } from '../../src/log/store.ts'
import { createLane } from '../../src/testing/play/lane.ts'

const opening = vi.hoisted((): { store: () => LogStore } => ({
  store: () => {
    throw new Error('no store today')
  },
}))

vi.mock('../../src/log/stores/sqlite.ts', () => ({ sqliteStore: () => opening.store() }))

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-lane-'))
  vi.stubEnv('TMPDIR', folder)
})

afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(folder, { recursive: true })
})

test('a store that cannot be opened leaves no folder behind', async () => {
  await expect(createLane()).rejects.toThrow('no store today')
  expect(readdirSync(folder)).toEqual([])
})

test('a store that cannot be closed leaves no folder behind', async () => {
  const closing = async (): Promise<void> => {
    throw new Error('not closed')
  }
  opening.store = () => ({ [Symbol.asyncDispose]: closing }) as Partial<LogStore> as LogStore
  const lane = await createLane()
  expect(readdirSync(folder)).toHaveLength(1)
  await expect(lane[Symbol.asyncDispose]()).rejects.toThrow('not closed')
  expect(readdirSync(folder)).toEqual([])
})
