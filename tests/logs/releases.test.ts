/**
 * What a release wrote is read for ever: every log that one left folds to the state it was left in, holds its rules, and
 * is carried on to the outcome that was promised when it was written, with each tool's body run so often and no oftener.
 */
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { resumeAll } from '../../src/agent/resume-all.ts'
import { createAgent } from '../../src/agent.ts'
import { deriveMessages } from '../../src/log/derive.ts'
import { requestDigest } from '../../src/log/digest.ts'
import type { SessionEvent } from '../../src/log/events.ts'
import { KNOWN } from '../../src/log/events.ts'
import { checkInvariants } from '../../src/log/invariants.ts'
import { canonicalJson, toJson } from '../../src/log/json.ts'
import { rebuildRequest } from '../../src/log/rebuild.ts'
import type { LogStore } from '../../src/log/store.ts'
import { fold, stateName } from '../../src/machines/fold.ts'
import { verify } from '../../src/machines/verify.ts'
import { scripted } from '../../src/services/adapters/scripted.ts'
import { systemClock } from '../../src/services/clock.ts'
import { ofType, stored } from '../kit/agents.ts'
import { carryOn, oneMoreTurn } from '../kit/releases/carry-on.ts'
import { wordsIn } from '../kit/releases/words.ts'
import { filesOf, type LeftLog, linesOf, type OpenedCopy, openCopy, openPlanted, releases } from '../kit/releases.ts'

const run = promisify(execFile)
const SCRIPT = fileURLToPath(new URL('../../scripts/release-logs.mjs', import.meta.url))

const canonical = (events: readonly SessionEvent[]): readonly string[] =>
  events.map((event) => canonicalJson(toJson(event)))

/** Of every attempt that said something: where it was, and the digest of what it was asked. */
const askedIn = (events: readonly SessionEvent[]) =>
  ofType(events, 'assistant/chunk').flatMap(({ data: { request, ...at } }) =>
    request === undefined ? [] : [{ at, request }],
  )

test('there is a release to look at', () => {
  expect(releases().map(({ version }) => version)).toContain('0.1.0')
})

describe('what writes them', () => {
  test('refuses a folder that is there', async () => {
    const written = run(process.execPath, [SCRIPT, '--to', fileURLToPath(new URL('0.1.0', import.meta.url))])
    await expect(written).rejects.toThrow('is there: the logs of a release are written once')
  })

  test('writes a store, its logs and what is told of them as of now', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'pawl-written-'))
    onTestFinished(() => rmSync(folder, { recursive: true }))
    await run(process.execPath, [SCRIPT, '--only', 'killed', '--to', join(folder, 'logs')])
    const names = readdirSync(join(folder, 'logs')).map((name) => name.replace(/-owner-.*/, '-owner'))
    expect(names.sort()).toEqual([
      'index.json',
      'killed-at-rest.jsonl',
      'killed-in-a-body.jsonl',
      'killed.db',
      'killed.db-owner',
      'killed.db-wal',
    ])
    const index: { sessions: readonly LeftLog[] } = JSON.parse(readFileSync(join(folder, 'logs/index.json'), 'utf8'))
    expect(index.sessions.map(({ name, state }) => `${name}: ${state}`)).toEqual([
      'killed-at-rest: idle',
      'killed-in-a-body: toolExec',
    ])
  }, 60_000)
})

describe.each(releases())('what $version left', (release) => {
  const logs = release.sessions.map((log) => ({ ...log, lines: linesOf(release, log) }))

  test('is all there, and nothing else', () => {
    const told = ['index.json', ...logs.map(({ name }) => `${name}.jsonl`), ...Object.values(release.stores).flat()]
    expect(filesOf(release)).toEqual(told.sort())
  })

  test('is, in one store, as a process that was killed left it', () => {
    expect(Object.values(release.stores).some((files) => files.some((file) => file.endsWith('.db-wal')))).toBe(true)
  })

  const shown = new Map<string, Set<string>>()
  for (const { lines } of logs) {
    for (const [place, word] of wordsIn(lines)) shown.set(place, (shown.get(place) ?? new Set()).add(word))
  }

  test.each(Object.entries(release.vocabulary))('shows every word that it could write as %s', (place, words) => {
    expect([...(shown.get(place) ?? [])].sort()).toEqual([...words].sort())
  })

  test('is of types that are known to this day', () => {
    const types = release.vocabulary['event type'] ?? []
    expect(types.filter((type) => !KNOWN.has(type))).toEqual(['a plug-in’s'])
  })

  describe('as JSON lines', () => {
    test.each(logs)('$name: $shows', ({ lines, state, events, verifies, summary }) => {
      expect(lines).toHaveLength(events)
      expect(stateName(fold(lines))).toBe(state)
      expect(verifies).toBe(true)
      expect(verify(lines)).toEqual({ ok: true, events, turns: summary.turns, state })
      expect(checkInvariants(lines)).toEqual([])
    })

    test('each request is rebuilt as it was asked', () => {
      const asked = logs.flatMap(({ lines }) => askedIn(lines).map((attempt) => ({ lines, ...attempt })))
      expect(asked.length).toBeGreaterThan(100)
      for (const { lines, at, request } of asked) expect(requestDigest(rebuildRequest(lines, at))).toBe(request)
    })
  })

  describe.each(Object.keys(release.stores))('as %s.db', (name) => {
    const inStore = logs.filter(({ store }) => store === name)

    test('holds the same events', async () => {
      await using copy = openCopy(release, name)
      for (const { header, lines } of inStore) {
        expect(canonical(await stored(copy.store, header.id))).toEqual(canonical(lines))
        expect(await copy.store.header(header.id)).toEqual(header)
      }
    })

    test('lists its sessions as they were listed', async () => {
      await using copy = openCopy(release, name)
      const listed = []
      for await (const session of copy.store.list()) listed.push(session)
      expect(listed).toEqual(inStore.map(({ summary }) => ({ ...summary, owned: false })))
    })

    test('has all that is owed resumed, and nothing else touched', async () => {
      await using copy = openCopy(release, name)
      const owed = inStore.filter(({ summary }) => summary.owed || summary.wakeAt !== undefined)
      const later = Math.max(...inStore.map(({ summary }) => summary.updatedAt)) + 3_600_000
      const clock = { ...systemClock, now: () => later }
      const reports = await resumeAll(copy.store, () => ({ model: scripted(() => 'Resumed.'), clock }))
      expect(reports).toEqual(owed.map(({ header }) => ({ sessionId: header.id, result: 'quiet' })))
      for (const { header, lines } of inStore) {
        const now = await stored(copy.store, header.id)
        expect(now.length > lines.length).toBe(owed.some((one) => one.header.id === header.id))
        expect(verify(now).ok).toBe(true)
      }
    })

    describe('opened again', () => {
      let copy: OpenedCopy
      beforeAll(() => {
        copy = openCopy(release, name)
      })
      afterAll(() => copy[Symbol.asyncDispose]())

      test.each(inStore)('$name goes on, takes another turn, and is forked where it was left', (log) =>
        livesOn(copy.store, log),
      )
    })
  })

  describe('in memory, opened again', () => {
    test.each(logs)('$name goes on, takes another turn, and is forked where it was left', async (log) => {
      await using planted = await openPlanted(release, log)
      await livesOn(planted.store, log)
    })
  })
})

type WithLines = LeftLog & { readonly lines: readonly SessionEvent[] }

async function livesOn(store: LogStore, log: WithLines): Promise<void> {
  await goesOn(store, log)
  await takesAnotherTurn(store, log)
  await isForked(store, log)
}

/** To the outcome that was promised, the model asked no oftener than it answered. */
async function goesOn(store: LogStore, log: WithLines): Promise<void> {
  const { asked, ...outcome } = await carryOn(store, log)
  expect(outcome).toEqual(log.opened.leadsTo)
  const now = await stored(store, log.header.id)
  const added = now.slice(log.events)
  expect(asked).toBe(ofType(added, 'assistant/message').length)
  expect(stateName(fold(now))).toBe('idle')
  // A log at rest, with nothing posted and nothing woken, is opened and closed without a word.
  if (log.state === 'idle' && log.posted.length === 0 && !log.opened.wake) expect(added).toEqual([])
}

async function takesAnotherTurn(store: LogStore, log: WithLines): Promise<void> {
  const { id } = log.header
  expect(await oneMoreTurn(store, id)).toEqual({ reason: 'completed', ran: ['extra extra 1'] })
  const grown = await stored(store, id)
  expect(verify(grown)).toMatchObject({ ok: true, state: 'idle' })
  expect(canonical(grown).slice(0, log.events)).toEqual(canonical(log.lines))
  // What was said stays said; a step that was open may still get results in between.
  const said = deriveMessages(log.lines)
  if (log.state === 'idle') expect(deriveMessages(grown).slice(0, said.length)).toEqual(said)
}

/** Its child comes to rest, and does nothing twice that had begun. */
async function isForked(store: LogStore, log: WithLines): Promise<void> {
  await using parent = await createAgent({ store, sessionId: log.header.id, model: scripted(() => 'The parent’s.') })
  const { sessionId } = await parent.fork({ sessionId: `of ${log.name}`, at: log.events })
  expect((await store.header(sessionId))?.seedLength).toBe(log.events)

  const { ran, probed } = await carryOn(store, { ...log, posted: [] }, sessionId)
  const child = await stored(store, sessionId)
  expect(canonical(child).slice(0, log.events)).toEqual(canonical(log.lines))
  expect(verify(child)).toMatchObject({ ok: true, state: 'idle' })
  const begun = new Set(ofType(log.lines, 'tool/dispatch').map(({ data }) => data.callId))
  expect(ran.filter((body) => begun.has(body.split(' ')[1] ?? ''))).toEqual([])
  expect(probed).toEqual([])
}
