/** Each example runs as it stands, in a folder of its own, and prints what its reader is led to expect. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

const home = process.cwd()
let folder = ''
let printed: string[] = []

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pawl-example-'))
  process.chdir(folder)
  vi.stubEnv('DEEPSEEK_API_KEY', undefined)
  printed = []
  vi.spyOn(console, 'log').mockImplementation((...words) => void printed.push(words.join(' ')))
})

afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
  process.chdir(home)
  rmSync(folder, { recursive: true, force: true })
})

test('the first agent reads the files of its folder and answers from them', async () => {
  writeFileSync('README.md', '# Barometer\n\nBarometer is a project that measures the pressure of air.\n')
  await import('../examples/first-agent.ts')
  expect(printed.join('\n')).toMatch(/^completed /)
  expect(printed.join('\n')).toContain('measures the pressure of air')
})

test('a call that somebody must allow waits, is allowed by its digest, and runs once', async () => {
  await import('../examples/tools-and-approval.ts')
  const mail = '{"to":"ada@example.org","body":"The build is green."}'
  expect(printed).toEqual([`send_mail ${mail}`, 'completed: Ada knows.', `mail:call-1 ${mail}`])
})

test('an agent in a chart of one’s own is asked, and its answers come back as events', async () => {
  await import('../examples/embedded-in-a-machine.ts')
  expect(printed).toEqual(['Seven. It is prime.'])
})

test('a model of the AI SDK calls a tool and answers', async () => {
  await import('../examples/ai-sdk.ts')
  expect(printed).toEqual(['completed: It is 18 degrees. (90 tokens)'])
})
