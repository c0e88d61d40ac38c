import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { MAX_OUTPUT_BYTES } from '../../../../src/services/tools/workspace/run-command.ts'
import { type Call, callerOf, tempFolder } from './call.ts'

let root: string
let call: Call

beforeEach(() => {
  root = tempFolder()
  call = callerOf({ root, graceMs: 300 })
})

const run = (command: string, more: { timeoutMs?: number } = {}, signal?: AbortSignal): Promise<string> =>
  call('run_command', { command, ...more }, signal)

/** Alive: there, and not a zombie that nobody has looked at yet. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    if (process.platform !== 'linux') return true
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    // No such process, or none any more between the two looks.
    return false
  }
}

/** The pid a command wrote to a file of the workspace. */
async function pidIn(file: string): Promise<number> {
  const pid = await vi.waitUntil(() => existsSync(join(root, file)) && Number(readFileSync(join(root, file), 'utf8')), {
    timeout: 5000,
    interval: 10,
  })
  expect(isAlive(pid)).toBe(true)
  return pid
}

const gone = (pid: number): Promise<unknown> => vi.waitUntil(() => !isAlive(pid), { timeout: 2000, interval: 10 })

describe('run_command', () => {
  test('gives both outputs in their order, and the exit code', async () => {
    expect(await run('echo one; echo two >&2; echo three; exit 3')).toBe('one\ntwo\nthree\n[exit code 3]')
    expect(await run('true')).toBe('[exit code 0]')
    expect(await run('printf "no newline"')).toBe('no newline\n[exit code 0]')
  })

  test('runs in the root, without input', async () => {
    expect(await run('pwd; cat')).toBe(`${root}\n[exit code 0]`)
  })

  test('says which signal ended a command, and does not take an exit code for one', async () => {
    expect(await run('kill -SEGV $$')).toBe('[ended by SIGSEGV]')
    expect(await run('exit 137')).toBe('[exit code 137]')
  })

  test('takes a command that starts with a dash or holds quotes', async () => {
    expect(await run(`-x 2>/dev/null; echo "a'b" 'c"d' \\$`)).toBe(`a'b c"d $\n[exit code 0]`)
  })

  test('passes on a clean environment and what it is given', async () => {
    vi.stubEnv('SOME_API_KEY', 'secret')
    vi.stubEnv('LANG', 'C')
    const lines = (await callerOf({ root, env: { EXTRA: 'yes' } })('run_command', { command: 'env' })).split('\n')
    vi.unstubAllEnvs()
    expect(lines).toContain('LANG=C')
    expect(lines).toContain('EXTRA=yes')
    expect(lines.join()).not.toContain('secret')
  })

  test('leaves no descriptor of its own to the command', async () => {
    expect(await run('(: >&3) 2>/dev/null || echo closed')).toBe('closed\n[exit code 0]')
  })

  test('keeps the start and the end of a long output, between characters', async () => {
    const text = await run(`printf START; head -c ${MAX_OUTPUT_BYTES * 3} /dev/zero | tr '\\0' x; printf 'ääEND'`)
    expect(text).toMatch(/^STARTx+\n\[\d+ bytes left out here\]\nx+ääEND\n\[exit code 0\]$/)
    expect(Buffer.byteLength(text)).toBeLessThan(MAX_OUTPUT_BYTES + 100)
    const wide = await run(`yes 'ä€😀' | head -n 20000`)
    expect(wide).not.toContain('\uFFFD')
    expect(wide).toMatch(/^(ä€😀\n)+/)
  })

  test('asks a command to stop when its time is up, and keeps what it said', async () => {
    const text = await run('trap "echo bye; exit 7" TERM; echo hello; sleep 1000 & wait', { timeoutMs: 1000 })
    expect(text).toBe('hello\nbye\n[stopped after 1000 ms, exit code 7]')
  })

  test('kills a command that does not stop when asked', async () => {
    const text = await run('trap "" TERM; echo $$ > pid; while :; do sleep 1000; done', { timeoutMs: 1000 })
    expect(text).toBe('[stopped after 1000 ms, ended by SIGKILL]')
    expect(isAlive(Number(readFileSync(join(root, 'pid'), 'utf8')))).toBe(false)
  })

  test('stops everything a command started when the call is aborted, and fails with what is known', async () => {
    const abort = new AbortController()
    const running = run('echo started; sh -c "echo \\$\\$ > pid; exec sleep 1000"; true', {}, abort.signal)
    const failed = expect(running).rejects.toMatchObject({
      code: 'ABORTED',
      message: 'started\n[stopped because the call was aborted, ended by SIGTERM]',
    })
    const pid = await pidIn('pid')
    abort.abort()
    await failed
    expect(isAlive(pid)).toBe(false)
  })

  test('starts nothing for a call that is already aborted', async () => {
    await expect(run('touch file', {}, AbortSignal.abort())).rejects.toMatchObject({ code: 'ABORTED' })
    expect(existsSync(join(root, 'file'))).toBe(false)
  })

  test('ends what a command leaves in the background, though it holds the output', async () => {
    expect(await run('sleep 1000 & echo $! > pid; echo done')).toBe('done\n[exit code 0]')
    expect(isAlive(Number(readFileSync(join(root, 'pid'), 'utf8')))).toBe(false)
  })

  // macOS has no setsid command.
  test.skipIf(process.platform === 'darwin')(
    'does not wait for a process that left the group and holds the output',
    async () => {
      expect(await run('setsid sleep 3 & sleep 0.1; echo done')).toBe('done\n[exit code 0]')
    },
  )

  test('says when a command cannot be started', async () => {
    await expect(run('echo a\0b')).rejects.toMatchObject({ code: 'COMMAND_NOT_STARTED' })
    await expect(run('x'.repeat(3_000_000))).rejects.toMatchObject({ code: 'COMMAND_NOT_STARTED' })
  })
})

describe('a command whose owner dies', () => {
  /** A process of its own that runs one command; Node runs no TypeScript everywhere, so it is bundled first. */
  async function ownerOf(command: string): Promise<ChildProcess> {
    const source = join(import.meta.dirname, '../../../../src/services/tools/workspace/guarded-command.ts')
    const bundle = await rolldown({ input: source, platform: 'node' })
    const file = join(root, 'guarded-command.mjs')
    await bundle.write({ file, format: 'esm' })
    const options = {
      cwd: root,
      env: { PATH: '/usr/bin:/bin' },
      timeoutMs: 60_000,
      graceMs: 60_000,
      maxOutputBytes: 1000,
    }
    const script = `import { runGuarded } from ${JSON.stringify(file)}
      runGuarded(${JSON.stringify(command)}, { ...${JSON.stringify(options)}, signal: new AbortController().signal })`
    return spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'ignore' })
  }

  test('by SIGKILL is killed, with what it started', async () => {
    const owner = await ownerOf('sh -c "echo \\$\\$ > inner; exec sleep 1000" & echo $$ > outer; wait')
    const pids = [await pidIn('outer'), await pidIn('inner')]
    owner.kill('SIGKILL')
    await Promise.all(pids.map(gone))
  })

  test('is killed even if it ignores every signal it can, and kills its own group', async () => {
    const owner = await ownerOf('trap "" TERM HUP INT; kill -TERM 0; echo $$ > pid; while :; do sleep 1000; done')
    const pid = await pidIn('pid')
    owner.kill('SIGKILL')
    await gone(pid)
  })

  test('by SIGTERM is killed', async () => {
    const owner = await ownerOf('echo $$ > pid; exec sleep 1000')
    const pid = await pidIn('pid')
    owner.kill('SIGTERM')
    await gone(pid)
  })
})
