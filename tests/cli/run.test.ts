import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { answer, refusal, wireServer } from '../kit/wire-server.ts'
import { eventsIn, PATIENCE, type Place, place } from './pawl.ts'

vi.setConfig(PATIENCE)

let here: Place
beforeEach(() => {
  here = place()
})
afterEach(() => here.remove())

const QUESTION = 'How do I run the tests?'

describe('pawl run', () => {
  test('streams the answer and the tool lines to stdout, all else to stderr', async () => {
    const { code, out, err } = await here.pawl('run', QUESTION, '--model', 'demo', '--session', 's')
    expect(code).toBe(0)
    expect(out).toMatch(/^→ list_files$/m)
    expect(out).toMatch(/^✓ read_file path=README.md \(\d+ ms\)$/m)
    expect(out).toContain('README.md:5  Run the tests with `npm test`.')
    expect(err).toMatch(/^completed · 4 steps · \d+ calls · [\d,]+ tokens in, [\d,]+ out · .+$/m)
    expect(err).toContain(`session s in ${here.store}`)
  })

  test('uses the demo model when there is neither key nor server, and says so on stderr', async () => {
    const { code, out, err } = await here.pawl('run', 'hello')
    expect(code).toBe(0)
    expect(err).toContain('model: demo')
    expect(out).toContain('demo model: a small rule-based reader, not a language model')
  })

  test('prints its events as JSON lines that verify', async () => {
    const { code, out, err } = await here.pawl('run', QUESTION, '--model', 'demo', '--json')
    expect(code).toBe(0)
    expect(err).toBe('')
    const events = eventsIn(out)
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index))
    expect(events.at(-1)?.type).toBe('turn/end')
    writeFileSync(join(here.root, 'f.jsonl'), out)
    const verdict = await here.pawl('verify', '--file', 'f.jsonl')
    expect(verdict).toMatchObject({ code: 0, out: `ok: ${events.length} events, 1 turn, idle\n` })
  })

  test('prints only what it recorded itself when the session goes on', async () => {
    const first = eventsIn((await here.pawl('run', 'hello', '--session', 's', '--json', '--model', 'demo')).out)
    const second = eventsIn((await here.pawl('run', 'hello again', '--session', 's', '--json', '--model', 'demo')).out)
    expect(second[0]?.seq).toBe(first.length)
    expect(await here.events('s')).toEqual([...first, ...second])
  })

  test('ends with exit code 4 at its bound of steps', async () => {
    const { code, err } = await here.pawl('run', QUESTION, '--model', 'demo', '--max-steps', '1')
    expect(code).toBe(4)
    expect(err).toContain('max-steps')
  })

  test('asks the server at --base-url, which may send its answer byte by byte', async () => {
    await using server = await wireServer([
      { body: answer({ text: 'Grüß Gott 👋', usage: { prompt_tokens: 7, completion_tokens: 3 } }), split: 'bytes' },
    ])
    const { code, out, err } = await here.pawl('run', 'hello', '--base-url', server.url)
    expect({ code, out }).toEqual({ code: 0, out: 'Grüß Gott 👋\n' })
    expect(server.requests[0]?.body.model).toBe('deepseek-chat')
    expect(err).toContain('7 tokens in, 3 out')
  })

  test('a failed request is exit code 2 and, with --json, one line of error', async () => {
    const reply = refusal(401, { error: { message: 'no such key' } })
    await using server = await wireServer([reply, reply])
    const plain = await here.pawl('run', 'hello', '--base-url', server.url)
    expect(plain.code).toBe(2)
    expect(plain.err).toContain('error AUTH: ')
    const { code, out, err } = await here.pawl('run', 'hello', '--base-url', server.url, '--json')
    expect(code).toBe(2)
    expect(eventsIn(out).at(-1)?.type).toBe('turn/end')
    expect(JSON.parse(err)).toMatchObject({ error: { code: 'AUTH' } })
    expect(err.trimEnd().split('\n')).toHaveLength(1)
  })

  test('a reader that leaves early ends the output and not the run', async () => {
    const run = here.start('run', QUESTION, '--model', 'demo', '--session', 's', '--json')
    run.child.stdout.destroy()
    const { code, err } = await run.ended
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect((await here.events('s')).at(-1)?.type).toBe('turn/end')
  })

  test('a session that somebody has is busy', async () => {
    const owner = here.start('run', 'run: sleep 30', '--model', 'demo', '--session', 's', '--yes', '--json')
    await new Promise((resolve) => owner.child.stdout.once('data', resolve))
    const { code, err } = await here.pawl('run', 'hello', '--model', 'demo', '--session', 's', '--json')
    expect(code).toBe(1)
    expect(JSON.parse(err)).toMatchObject({ error: { code: 'SESSION_BUSY' } })
    owner.child.kill('SIGKILL')
    await owner.ended
  })
})

describe('approvals', () => {
  const ask = (command: string) => here.pawl('run', `run: ${command}`, '--model', 'demo', '--session', 's')
  const approveLine = (err: string): string[] => /pawl (approve s \S+)/.exec(err)?.[1]?.split(' ') ?? []

  test('without a terminal a call is left pending, with the line that approves it', async () => {
    const { code, err } = await ask('echo done > done.txt')
    expect(code).toBe(5)
    expect(err).toContain('waiting for approval of run_command command=echo done > done.txt')
    const approved = await here.pawl(...approveLine(err))
    expect(approved).toMatchObject({ code: 0, out: expect.stringContaining('`pawl resume s` carries on') })
    const resumed = await here.pawl('resume', 's')
    expect(resumed).toMatchObject({ code: 0, out: expect.stringContaining('✓ run_command') })
    expect(readFileSync(join(here.root, 'done.txt'), 'utf8')).toBe('done\n')
    expect((await here.pawl('verify', 's')).code).toBe(0)
  })

  test('a denied call never runs, and the model is told why', async () => {
    const { err } = await ask('echo done > done.txt')
    const [, session = '', call = ''] = approveLine(err)
    expect((await here.pawl('deny', session, call, '--reason', 'not today')).code).toBe(0)
    const { code, out } = await here.pawl('resume', 's')
    expect(code).toBe(0)
    expect(out).toContain('not today')
    expect((await here.events('s')).some(({ type }) => type === 'tool/dispatch')).toBe(false)
  })

  test('--yes allows what asks', async () => {
    const { code, out } = await here.pawl('run', 'run: echo hi there', '--model', 'demo', '--yes')
    expect(code).toBe(0)
    expect(out).toContain('hi there')
  })

  test('resuming without an answer waits on', async () => {
    await ask('echo')
    expect((await here.pawl('resume', 's')).code).toBe(5)
    expect((await here.pawl('resume', 's', '--yes')).code).toBe(0)
  })

  test('what waits for no approval cannot be approved', async () => {
    const { err } = await ask('echo')
    const line = approveLine(err)
    expect(await here.pawl('approve', 's', 'nothing')).toMatchObject({
      code: 1,
      err: expect.stringContaining('(APPROVAL_NOT_PENDING)'),
    })
    await here.pawl(...line)
    await here.pawl('resume', 's')
    expect(await here.pawl(...line)).toMatchObject({
      code: 1,
      err: expect.stringContaining('it was already approved (APPROVAL_ALREADY_RESOLVED)'),
    })
  })
})

describe('pawl resume', () => {
  test('with nothing owed says so, records nothing and exits 0', async () => {
    await here.pawl('run', 'hello', '--model', 'demo', '--session', 's')
    const before = await here.events('s')
    expect(await here.pawl('resume', 's')).toMatchObject({
      code: 0,
      err: expect.stringContaining('nothing to carry on'),
    })
    expect(await here.events('s')).toEqual(before)
  })

  test('never creates a session, nor a store', async () => {
    expect(await here.pawl('resume', 'missing')).toMatchObject({ code: 1, err: expect.stringContaining('no store at') })
    await here.pawl('run', 'hello', '--model', 'demo', '--session', 's')
    expect(await here.pawl('resume', 'missing')).toMatchObject({
      code: 1,
      err: expect.stringContaining('(SESSION_NOT_FOUND)'),
    })
    expect((await here.pawl('sessions', '--json')).out.trimEnd().split('\n')).toHaveLength(1)
  })
})
