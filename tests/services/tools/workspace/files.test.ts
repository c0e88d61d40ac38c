import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import type { PawlError } from '../../../../src/log/errors.ts'
import { InvalidOption } from '../../../../src/services/errors.ts'
import { MAX_LISTED } from '../../../../src/services/tools/workspace/list-files.ts'
import { MAX_FILE_BYTES, MAX_READ_CHARS } from '../../../../src/services/tools/workspace/read-file.ts'
import { MAX_MATCHES, MAX_SEARCHED_BYTES } from '../../../../src/services/tools/workspace/search-text.ts'
import { workspaceTools } from '../../../../src/services/tools/workspace/workspace-tools.ts'
import { type Call, callerOf, tempFolder } from './call.ts'

let outside: string
let root: string
let call: Call

beforeEach(() => {
  const folder = tempFolder()
  outside = join(folder, 'outside')
  root = join(folder, 'root')
  mkdirSync(root)
  put('../outside/secret.txt', 'secret needle')
  call = callerOf({ root })
})

function put(path: string, content: string | Buffer): void {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), content)
}

describe('the tools of a workspace', () => {
  test('say what may run together, what a crash means, and what must be allowed', async () => {
    const facts = workspaceTools({ root }).map(async (tool) => [
      tool.name,
      tool.modeOf({}),
      tool.onCrash,
      await tool.needsApproval({}),
    ])
    expect(await Promise.all(facts)).toEqual([
      ['list_files', 'parallel', 'rerun', false],
      ['read_file', 'parallel', 'rerun', false],
      ['search_text', 'parallel', 'rerun', false],
      ['write_file', 'exclusive', 'unknown', true],
      ['run_command', 'exclusive', 'unknown', true],
    ])
  })

  test('need a root that is a folder', () => {
    put('file', '')
    expect(() => workspaceTools({ root: join(root, 'file') })).toThrow(InvalidOption)
    expect(() => workspaceTools({ root: join(root, 'none') })).toThrow(InvalidOption)
    expect(() => workspaceTools({ root, graceMs: 0 })).toThrow(InvalidOption)
  })

  test('take a root that is itself a link', async () => {
    put('a.txt', 'here')
    symlinkSync(root, join(outside, 'alias'))
    const through = callerOf({ root: join(outside, 'alias') })
    expect(await through('read_file', { path: 'a.txt' })).toBe('here')
    expect(await through('read_file', { path: join(outside, 'alias', 'a.txt') })).toBe('here')
    expect(await through('list_files', {})).toBe('a.txt')
  })
})

describe('outside the root', () => {
  const ways: [string, () => string][] = [
    ['..', () => '../outside/secret.txt'],
    ['.. further in', () => 'a/../../outside/secret.txt'],
    ['an absolute path', () => join(outside, 'secret.txt')],
    ['an absolute path that starts like the root', () => `${root}-not/secret.txt`],
    ['a link to a file', () => 'file-link'],
    ['a link to a folder', () => 'folder-link/secret.txt'],
    ['a link by way of a link', () => 'second-link/secret.txt'],
    ['a link to nothing', () => 'dangling'],
    ['a file below a link to nothing', () => 'dangling/new.txt'],
  ]
  beforeEach(() => {
    put('a/b.txt', '')
    symlinkSync(join(outside, 'secret.txt'), join(root, 'file-link'))
    symlinkSync(outside, join(root, 'folder-link'))
    symlinkSync('folder-link', join(root, 'second-link'))
    symlinkSync(join(outside, 'new.txt'), join(root, 'dangling'))
  })

  test.each(ways)('nothing is read by %s', async (_, path) => {
    await expect(call('read_file', { path: path() })).rejects.toMatchObject({ code: 'OUTSIDE_ROOT' })
    await expect(
      call('list_files', { path: dirname(path()) === '.' ? path() : dirname(path()) }),
    ).rejects.toMatchObject({
      code: 'OUTSIDE_ROOT',
    })
    await expect(call('search_text', { query: 'needle', path: path() })).rejects.toMatchObject({ code: 'OUTSIDE_ROOT' })
  })

  test.each(ways)('nothing is written by %s', async (_, path) => {
    const before = readdirSync(dirname(root)).concat(readdirSync(outside))
    await expect(call('write_file', { path: path(), content: 'x' })).rejects.toMatchObject({ code: 'OUTSIDE_ROOT' })
    expect(readdirSync(dirname(root)).concat(readdirSync(outside))).toEqual(before)
    expect(readFileSync(join(outside, 'secret.txt'), 'utf8')).toBe('secret needle')
  })

  test('links are neither listed nor searched', async () => {
    expect(await call('list_files', {})).toBe('a/b.txt')
    expect(await call('search_text', { query: 'needle' })).toBe('[no matches]')
  })

  test('nothing is read or written while a folder and a link take turns', async () => {
    put('swap/secret.txt', 'inside')
    put('../outside/other.txt', '')
    symlinkSync(outside, join(root, 'link'))
    const swapper = spawn(process.execPath, ['-e', SWAP], { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] })
    await once(swapper.stdout, 'data')
    const outcomes = new Map<string, number>()
    for (let i = 0; i < 150 || !outcomes.has('inside') || !outcomes.has('OUTSIDE_ROOT'); i++) {
      const text = await call('read_file', { path: 'swap/secret.txt' }).catch((error: PawlError) => error.code)
      outcomes.set(text, (outcomes.get(text) ?? 0) + 1)
      await call('write_file', { path: 'swap/mine.txt', content: 'x' }).catch(() => undefined)
      const listed = await call('list_files', { path: 'swap' }).catch(() => '')
      expect(listed).not.toContain('other.txt')
    }
    expect(swapper.exitCode).toBe(null)
    const exit = once(swapper, 'exit')
    swapper.kill('SIGKILL')
    await exit
    expect(outcomes.has('secret needle')).toBe(false)
    expect(readdirSync(outside)).toEqual(['other.txt', 'secret.txt'])
  }, 30_000)

  /** Exchanges the two names as fast as it can; a write may make the folder anew in between, which is removed. */
  const SWAP = `
    const { renameSync, rmSync } = require('node:fs')
    const move = (from, to) => {
      for (;;) {
        try { return renameSync(from, to) } catch {}
        try { rmSync(to, { recursive: true, force: true }) } catch {}
      }
    }
    console.log('started')
    for (;;) {
      move('swap', 'third'); move('link', 'swap')
      move('swap', 'link'); move('third', 'swap')
    }`
})

describe('list_files', () => {
  test('lists paths in their order, without what tools generate', async () => {
    for (const path of ['b.ts', 'a/z.ts', 'a.ts', 'a-b/c.ts', '.git/config', 'node_modules/m/i.js', 'x/dist/o.js'])
      put(path, '')
    expect(await call('list_files', {})).toBe('a-b/c.ts\na.ts\na/z.ts\nb.ts')
    expect(await call('list_files', { path: 'a' })).toBe('a/z.ts')
    expect(await call('list_files', { path: 'node_modules/m' })).toBe('node_modules/m/i.js')
    expect(await call('list_files', { path: join(root, 'a') })).toBe('a/z.ts')
  })

  test.each([
    ['*.ts', 'a.ts\nsrc/app/[id]/page.ts\nsrc/b.ts'],
    ['src/*.ts', 'src/b.ts'],
    ['src/**/*.ts', 'src/app/[id]/page.ts\nsrc/b.ts'],
    ['**/[id]/*', 'src/app/[id]/page.ts'],
    ['./src/**', 'src/app/[id]/page.ts\nsrc/b.ts\nsrc/c.md'],
    ['?.{ts,md}', 'a.ts\nsrc/b.ts\nsrc/c.md'],
    ['{a,src/b}.ts', 'a.ts\nsrc/b.ts'],
    ['*.TS', '[no files]'],
  ])('matches %s', async (glob, listed) => {
    for (const path of ['a.ts', 'src/b.ts', 'src/c.md', 'src/app/[id]/page.ts']) put(path, '')
    expect(await call('list_files', { glob })).toBe(listed)
  })

  test('matches a glob below the path it is given', async () => {
    for (const path of ['x/a/b.ts', 'a/c.ts']) put(path, '')
    expect(await call('list_files', { path: 'x', glob: 'a/*' })).toBe('x/a/b.ts')
  })

  test('is not held up by a glob of stars', async () => {
    put('a'.repeat(200), '')
    expect(await call('list_files', { glob: `${'*a'.repeat(90)}b` })).toBe('[no files]')
    await expect(call('list_files', { glob: '{a,b}'.repeat(10) })).rejects.toMatchObject({ code: 'INVALID_GLOB' })
  })

  test('says when there are more files than it lists', async () => {
    for (let i = 0; i <= MAX_LISTED; i++) put(`f${String(i).padStart(5, '0')}`, '')
    const lines = (await call('list_files', {})).split('\n')
    expect(lines).toHaveLength(MAX_LISTED + 1)
    expect(lines.at(-1)).toBe(`[${MAX_LISTED} files shown, there are more: pass a path or a glob]`)
    expect(await call('list_files', { glob: 'f0000?' })).not.toContain('[')
  })

  test('says what it cannot list', async () => {
    put('file', '')
    await expect(call('list_files', { path: 'none' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(call('list_files', { path: 'file' })).rejects.toMatchObject({ code: 'NOT_A_FOLDER' })
    await expect(call('list_files', { path: 'a\0b' })).rejects.toMatchObject({ code: 'INVALID_PATH' })
    await expect(call('list_files', {}, AbortSignal.abort(new Error('over')))).rejects.toThrow('over')
  })
})

describe('read_file', () => {
  test('gives the text as it is', async () => {
    put('a.txt', 'one\r\ntwö\n')
    expect(await call('read_file', { path: './a.txt' })).toBe('one\r\ntwö\n')
  })

  test('gives some lines, and says which', async () => {
    put('a.txt', '1\n2\n3\n4')
    expect(await call('read_file', { path: 'a.txt', startLine: 2, endLine: 3 })).toBe('2\n3\n[lines 2-3 of 4]')
    expect(await call('read_file', { path: 'a.txt', startLine: 4 })).toBe('4\n[lines 4-4 of 4]')
    expect(await call('read_file', { path: 'a.txt', startLine: 1, endLine: 99 })).toBe('1\n2\n3\n4')
    await expect(call('read_file', { path: 'a.txt', startLine: 5 })).rejects.toMatchObject({ code: 'INVALID_RANGE' })
    await expect(call('read_file', { path: 'a.txt', startLine: 3, endLine: 2 })).rejects.toThrow('4 lines')
    await expect(call('read_file', { path: 'a.txt', startLine: 0 })).rejects.toThrow('$.startLine')
  })

  test('cuts a long text at a line and says how to read on', async () => {
    const line = `${'x'.repeat(999)}\n`
    put('long.txt', line.repeat(250))
    const perResult = MAX_READ_CHARS / 1000
    const first = await call('read_file', { path: 'long.txt' })
    expect(first).toBe(
      `${line.repeat(perResult)}[lines 1-${perResult} of 250; cut here, read on with startLine ${perResult + 1}]`,
    )
    expect(await call('read_file', { path: 'long.txt', startLine: 201 })).toBe(
      `${line.repeat(50)}[lines 201-250 of 250]`,
    )
  })

  test('cuts a line that is too long, between characters', async () => {
    put('min.js', `${'x'.repeat(MAX_READ_CHARS - 1)}😀`)
    const text = await call('read_file', { path: 'min.js' })
    expect(text).toMatch(/x\n\[start of line 1 of 1: /)
  })

  test('says that a file is empty', async () => {
    put('empty', '')
    expect(await call('read_file', { path: 'empty' })).toBe('[the file is empty]')
  })

  test('refuses what is no text file', async () => {
    put('bin', Buffer.from([1, 0, 2]))
    put('big', Buffer.alloc(MAX_FILE_BYTES + 1, 'x'))
    execFileSync('mkfifo', [join(root, 'pipe')])
    await expect(call('read_file', { path: 'bin' })).rejects.toMatchObject({ code: 'BINARY_FILE' })
    await expect(call('read_file', { path: 'big' })).rejects.toMatchObject({ code: 'TOO_LARGE_FILE' })
    await expect(call('read_file', { path: 'pipe' })).rejects.toMatchObject({ code: 'NOT_A_FILE' })
    await expect(call('read_file', { path: '.' })).rejects.toMatchObject({ code: 'NOT_A_FILE' })
    await expect(call('read_file', { path: 'none/none' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(call('read_file', { path: 'bin/none' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test('follows a link that stays inside', async () => {
    put('docs/a.txt', 'here')
    symlinkSync('docs', join(root, 'link'))
    expect(await call('read_file', { path: 'link/a.txt' })).toBe('here')
  })
})

describe('search_text', () => {
  test('finds plain text with its places, whatever a pattern would make of it', async () => {
    put('b.txt', 'x\na.c\r\nabc')
    put('a/a.txt', 'no\na.c a.c')
    expect(await call('search_text', { query: 'a.c' })).toBe('a/a.txt:2: a.c a.c\nb.txt:2: a.c')
    expect(await call('search_text', { query: 'a.c', path: 'b.txt' })).toBe('b.txt:2: a.c')
    expect(await call('search_text', { query: 'A.C' })).toBe('[no matches]')
  })

  test('finds what a regular expression matches, line by line', async () => {
    put('a.txt', 'abc\r\nxbc\nab')
    expect(await call('search_text', { query: '^a.?b?c$', regex: true })).toBe('a.txt:1: abc')
    await expect(call('search_text', { query: '(', regex: true })).rejects.toMatchObject({ code: 'INVALID_REGEX' })
  })

  test('stops an expression that would run for ever, while the process goes on', async () => {
    put('a.txt', `${'a'.repeat(60)}!`)
    const impatient = callerOf({ root, searchTimeoutMs: 300 })
    let ticks = 0
    const ticking = setInterval(() => {
      ticks += 1
    }, 10)
    await expect(impatient('search_text', { query: '^(a+)+$', regex: true })).rejects.toMatchObject({
      code: 'SEARCH_TIMEOUT',
    })
    clearInterval(ticking)
    expect(ticks).toBeGreaterThan(5)
  })

  test('stops with the call', async () => {
    put('a.txt', `${'a'.repeat(60)}!`)
    const abort = new AbortController()
    const searching = call('search_text', { query: '^(a+)+$', regex: true }, abort.signal)
    setTimeout(() => abort.abort(new Error('over')), 50)
    await expect(searching).rejects.toThrow('over')
  })

  test('passes over binary files, and says how many were too large', async () => {
    put('bin', Buffer.from('needle\0'))
    put('big', Buffer.alloc(MAX_SEARCHED_BYTES + 1, 'needle '))
    put('a.txt', 'needle')
    expect(await call('search_text', { query: 'needle' })).toBe(
      `a.txt:1: needle\n[1 files over ${MAX_SEARCHED_BYTES} bytes were not searched]`,
    )
    await expect(call('search_text', { query: 'n', path: 'bin' })).rejects.toMatchObject({ code: 'BINARY_FILE' })
    await expect(call('search_text', { query: 'n', path: 'none' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test.each([false, true])('cuts long lines, and says when there are more matches (regex: %s)', async (regex) => {
    put('a.txt', `${'needle'.repeat(1000)}\n`.repeat(MAX_MATCHES + 5))
    const lines = (await call('search_text', { query: 'needle', regex })).split('\n')
    expect(lines).toHaveLength(MAX_MATCHES + 1)
    expect(lines[0]).toHaveLength('a.txt:1: '.length + 300)
    expect(lines.at(-1)).toBe(`[${MAX_MATCHES} matches shown, there are more: narrow the query or the path]`)
  })
})

describe('write_file', () => {
  test('creates a file with its folders, then replaces it, and leaves nothing else', async () => {
    expect(await call('write_file', { path: 'a/b/c.txt', content: 'tö' })).toBe('Created a/b/c.txt, 3 bytes')
    expect(await call('write_file', { path: join(root, 'a/b/c.txt'), content: '' })).toBe('Replaced a/b/c.txt, 0 bytes')
    expect(readdirSync(join(root, 'a/b'))).toEqual(['c.txt'])
    expect(readFileSync(join(root, 'a/b/c.txt'), 'utf8')).toBe('')
  })

  test('keeps the permissions of what it replaces', async () => {
    put('run.sh', 'old')
    chmodSync(join(root, 'run.sh'), 0o750)
    await call('write_file', { path: 'run.sh', content: 'new' })
    expect(statSync(join(root, 'run.sh')).mode & 0o777).toBe(0o750)
  })

  test('writes through a link that stays inside, and keeps the link', async () => {
    put('real.txt', 'old')
    symlinkSync('real.txt', join(root, 'link.txt'))
    await call('write_file', { path: 'link.txt', content: 'new' })
    expect(readFileSync(join(root, 'real.txt'), 'utf8')).toBe('new')
    expect(lstatSync(join(root, 'link.txt')).isSymbolicLink()).toBe(true)
  })

  test('refuses what cannot be a file', async () => {
    put('file', 'kept')
    mkdirSync(join(root, 'folder'))
    for (const path of ['folder', '.', 'new/']) {
      await expect(call('write_file', { path, content: 'x' })).rejects.toMatchObject({ code: 'NOT_A_FILE' })
    }
    await expect(call('write_file', { path: 'file/x', content: 'x' })).rejects.toMatchObject({ code: 'NOT_A_FOLDER' })
    await expect(call('write_file', { path: 'x'.repeat(300), content: 'x' })).rejects.toMatchObject({
      code: 'INVALID_PATH',
    })
    expect(existsSync(join(root, 'new'))).toBe(false)
    expect(readdirSync(root)).toEqual(['file', 'folder'])
  })
})
