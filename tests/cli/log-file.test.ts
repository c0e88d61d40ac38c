import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { logFile } from '../../src/cli/log-file.ts'

let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pawl-log-file-'))
})
afterAll(() => rm(folder, { recursive: true }))

const start = JSON.stringify({
  type: 'turn/start',
  seq: 0,
  time: 5,
  data: { turn: 1, limits: { maxSteps: 50, maxParallelToolCalls: 10 } },
})
const end = JSON.stringify({ type: 'turn/end', seq: 1, time: 6, data: { turn: 1, reason: { kind: 'completed' } } })

async function read(text: string): Promise<number[]> {
  const path = join(folder, 'log.jsonl')
  await writeFile(path, text)
  const seqs: number[] = []
  for await (const event of logFile(path)) seqs.push(event.seq)
  return seqs
}

test('a log is read line by line, with or without a last line end, and with the line ends of Windows', async () => {
  expect(await read(`${start}\n${end}\n`)).toEqual([0, 1])
  expect(await read(`${start}\n${end}`)).toEqual([0, 1])
  expect(await read(`${start}\r\n${end}\r\n`)).toEqual([0, 1])
})

test('a half line at the end is told from a line that is no JSON', async () => {
  await expect(read(`${start}\n${end.slice(0, 20)}`)).rejects.toThrow('line 2 is cut off')
  await expect(read(`${start}\n${end.slice(0, 20)}\n`)).rejects.toThrow('line 2 is not JSON')
  await expect(read(`${start.slice(5)}\n${end}\n`)).rejects.toThrow('line 1 is not JSON')
})

test('an event out of place is named by seq and rule', async () => {
  await expect(read(`${end}\n`)).rejects.toThrow(/^seq 0: SEQ-CONTIGUOUS: /)
  await expect(read(`${start}\n[]\n`)).rejects.toThrow(/^seq 1: ENVELOPE: /)
})

test('an event of a type this version does not know is refused', async () => {
  await expect(read(`${start.replace('turn/start', 'turn/begun')}\n`)).rejects.toMatchObject({ code: 'LOG_TOO_NEW' })
})

test('an empty file, a folder and a missing file are errors', async () => {
  await expect(read('')).rejects.toThrow('holds no events')
  await expect(logFile(folder).next()).rejects.toThrow('cannot read')
  await expect(logFile(join(folder, 'missing')).next()).rejects.toThrow('cannot read')
})
