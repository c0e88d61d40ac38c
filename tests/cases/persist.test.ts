/** What is stored, and under which name. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { sqliteStore } from '../../src/log/stores/sqlite.ts'
import { scripted, text } from '../../src/services/adapters/scripted.ts'
import { startAgent, stored } from '../kit/agents.ts'

async function inFolder(run: (folder: string) => Promise<void>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'pawl-persist-'))
  try {
    await run(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

test('[persist-020] deltas that share a row are read back one by one, as they were', async () => {
  await inFolder(async (folder) => {
    await using store = sqliteStore(join(folder, 'p.db'))
    const told: unknown[] = []
    const model = scripted([[text('one two three four five', { deltas: 9 })]])
    await using started = await startAgent({ store, model })
    started.agent.on('session/event', (event) => void told.push(event))
    await started.agent.run('go')
    expect(JSON.stringify(await started.log())).toBe(JSON.stringify(told))
  })
})

test('[persist-021] a session’s id is a value and never a path; ids that look alike are different sessions', async () => {
  await inFolder(async (folder) => {
    const store = sqliteStore(join(folder, 'p.db'))
    const ids = ['../x', '..%2Fx', 'a/b', 'a\\b', 'A/B', "'; --", '\u0001', 'é', 'e\u0301']
    for (const sessionId of ids) {
      const started = await startAgent({ store, sessionId, model: scripted([sessionId]) })
      await started.agent.run(`to ${sessionId}`)
      await started.agent.close()
    }
    for (const id of ids) {
      expect((await store.header(id))?.id).toBe(id)
      expect(JSON.stringify(await stored(store, id))).toContain(JSON.stringify(`to ${id}`))
    }
    expect(readdirSync(folder).every((name) => name.startsWith('p.db'))).toBe(true)
    await store[Symbol.asyncDispose]()
  })
})
