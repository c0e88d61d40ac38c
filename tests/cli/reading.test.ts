import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { PATIENCE, type Place, place } from './pawl.ts'

vi.setConfig(PATIENCE)

let here: Place
beforeAll(async () => {
  here = place()
  await here.pawl('run', 'hello', '--model', 'demo', '--session', 'first')
  await here.pawl('run', 'How do I run the tests?', '--model', 'demo', '--session', 'second')
})
afterAll(() => here.remove())

test('pawl sessions lists them, and says in which store', async () => {
  const { code, out, err } = await here.pawl('sessions')
  expect(code).toBe(0)
  expect(out).toMatch(/^SESSION .*\nfirst +idle .*completed\nsecond +idle .*completed\n$/)
  expect(err).toBe(`2 sessions in ${here.store}\n`)
  const lines = (await here.pawl('sessions', '--json')).out.trimEnd().split('\n')
  expect(lines.map((line) => JSON.parse(line).id)).toEqual(['first', 'second'])
})

test('without a store there are no sessions, and none is made', async () => {
  const missing = join(here.root, 'none', 'x.db')
  const { code, out, err } = await here.pawl('sessions', '--store', missing)
  expect({ code, out, err }).toEqual({ code: 0, out: '', err: `0 sessions in ${missing}\n` })
})

test('pawl log shows a session to people and, with --json, as it is', async () => {
  const { out } = await here.pawl('log', 'second')
  expect(out).toMatch(/^ +\d+ {2}[\d:.]+ {2}turn\/start {2}turn 1$/m)
  expect(out).toMatch(/assistant\/chunk {2}to seq \d+, \d+ chunks, attempt 1/)
  expect((await here.events('second')).map(({ seq }) => seq)[0]).toBe(0)
})

test('a reader that leaves early ends the list quietly', async () => {
  const log = here.start('log', 'second', '--json')
  log.child.stdout.destroy()
  expect(await log.ended).toMatchObject({ code: 0, err: '' })
})

describe('pawl verify', () => {
  test('says that a log holds', async () => {
    expect((await here.pawl('verify', 'second')).out).toMatch(/^ok: \d+ events, 1 turn, idle\n$/)
  })

  test('names seq and rule of what does not, and exits 1', async () => {
    const lines = (await here.pawl('log', 'second', '--json')).out.split('\n')
    const file = join(here.root, 'broken.jsonl')
    const without = lines.filter((line) => !line.includes('"type":"turn/end"'))
    writeFileSync(file, without.map((line, seq) => line.replace(/"seq":\d+/, `"seq":${seq}`)).join('\n'))
    expect(await here.pawl('verify', '--file', file)).toMatchObject({ code: 0 })
    writeFileSync(file, lines.filter((_, index) => index !== 3).join('\n'))
    expect(await here.pawl('verify', '--file', file)).toMatchObject({
      code: 1,
      out: expect.stringMatching(/^seq 3: [A-Z-]+: /),
    })
    const twice = lines.flatMap((line) => (line.includes('"type":"turn/start"') ? [line, line] : [line]))
    writeFileSync(file, twice.map((line, seq) => line.replace(/"seq":\d+/, `"seq":${seq}`)).join('\n'))
    expect(await here.pawl('verify', '--file', file)).toMatchObject({
      code: 1,
      out: expect.stringMatching(/^seq \d+: [A-Z-]+: /),
    })
  })

  test('a file that is cut off is a clear error', async () => {
    const file = join(here.root, 'cut.jsonl')
    writeFileSync(file, (await here.pawl('log', 'second', '--json')).out.slice(0, -30))
    const { code, out, err } = await here.pawl('verify', '--file', file)
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toMatch(/^error: .*cut\.jsonl line \d+ is cut off.*\n$/)
  })
})

describe('what is wrong is said in one line, with exit code 1', () => {
  test.each([
    [[]],
    [['nonsense']],
    [['run']],
    [['run', '']],
    [['run', 'x', '--nonsense']],
    [['run', 'x', '--max-steps', '0']],
    [['run', 'x', '--root', '/no/such/folder']],
    [['run', 'x', '--base-url', 'nonsense']],
    [['run', 'x', '--session', '']],
    [['run', 'x', 'y']],
    [['log']],
    [['log', 'missing']],
    [['log', 'first', '--store', '/no/such/store.db']],
    [['verify']],
    [['verify', 'first', '--file', 'x']],
    [['verify', '--file', '/no/such/file']],
    [['verify', '--file', '/']],
    [['approve', 'first']],
    [['approve', 'missing', 'c']],
    [['cancel', 'first']],
    [['demo', '/no/such/folder']],
  ])('%j', async (args) => {
    const { code, out, err } = await here.pawl(...args)
    expect({ code, out }).toEqual({ code: 1, out: '' })
    if (args.length > 0) expect(err).toMatch(/^error: [^\n]+\n$/)
    else expect(err).toContain('Usage: pawl')
  })

  test('with --json as JSON', async () => {
    const { code, out, err } = await here.pawl('log', 'missing', '--json')
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(JSON.parse(err)).toEqual({ error: { code: 'SESSION_NOT_FOUND', message: expect.any(String) } })
  })
})

test('help and version are for stdout', async () => {
  expect(await here.pawl('--help')).toMatchObject({ code: 0, err: '', out: expect.stringContaining('resume') })
  expect((await here.pawl('--help')).out).not.toContain('demo-child')
  expect((await here.pawl('--version')).out).toMatch(/^\d+\.\d+\.\d+\n$/)
})
