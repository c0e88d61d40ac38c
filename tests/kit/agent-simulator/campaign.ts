/** Many schedules: each played, counted, and the first that fails made small and told with the line that plays it again. */
import { type Played, play } from './play.ts'
import { shrink } from './shrink.ts'
import { type Bytes, decodeTape, encodeTape, givenTape, seededTape } from './tape.ts'

export interface Campaign {
  readonly schedules: number
  readonly failures: number
  /** How often what happened, over all of them. */
  readonly counts: ReadonlyMap<string, number>
}

/** How a schedule is played again. */
const AGAIN = 'npx vitest run tests/agent/simulator.test.ts'

/**
 * Plays the seeds, until `minutes` are over. `tell` is given the report of each failure; the first is shrunk.
 */
export async function campaign(
  seeds: Iterable<number>,
  tell: (report: string) => void,
  minutes = Number.POSITIVE_INFINITY,
): Promise<Campaign> {
  const counts = new Map<string, number>()
  const until = Date.now() + minutes * 60_000
  let [schedules, failures] = [0, 0]
  for (const seed of seeds) {
    if (Date.now() > until) break
    const played = await play(seededTape(seed))
    schedules++
    for (const [what, times] of played.counts) counts.set(what, (counts.get(what) ?? 0) + times)
    if (played.breach === undefined) continue
    tell(failures++ === 0 ? await shrunk(seed, played) : reportOf(`PAWL_SEED=${seed} ${AGAIN}`, played, 12))
  }
  return { schedules, failures, counts }
}

/** Plays one tape that a report named. */
export const replay = (word: string): Promise<Played> => play(givenTape(decodeTape(word)))

/** The report of a failure, smaller than it was found. */
async function shrunk(seed: number, found: Played): Promise<string> {
  const fails = async (bytes: Bytes): Promise<boolean> => {
    const { breach } = await play(givenTape(bytes))
    return breach?.rule === found.breach?.rule
  }
  const tape = await shrink(found.tape, fails)
  const played = await play(givenTape(tape))
  const first = reportOf(`PAWL_TAPE=${encodeTape(tape)} ${AGAIN}`, played, 400)
  return `PAWL_SEED=${seed} ${AGAIN}\nand smaller, ${tape.length} steps instead of ${found.tape.length}:\n${first}`
}

/** The line to paste, the schedule in words, and what broke. */
export function reportOf(line: string, { story, breach }: Played, lines: number): string {
  const told = story.slice(-lines).join('\n')
  return `${line}\n${told}\n${breach === undefined ? 'nothing broke' : `${breach.rule}: ${breach.message}`}`
}

/** The counts in words, by kind, a line each. */
export function countsInWords({ schedules, failures, counts }: Campaign): string {
  const groups = new Map<string, string[]>([['', [`schedules ${schedules}`, `failures ${failures}`]]])
  for (const [what, times] of [...counts].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const [kind, ...rest] = what.split(' ')
    const grouped = rest.length > 0 && kind !== undefined && GROUPS.includes(kind)
    const group = grouped ? kind : ''
    groups.set(group, [...(groups.get(group) ?? []), `${grouped ? rest.join(' ') : what} ${times}`])
  }
  return [...groups].map(([kind, words]) => `${kind === '' ? 'agents' : kind}: ${words.join(', ')}`).join('\n')
}

const GROUPS = [
  'act',
  'ended',
  'fault',
  'hook',
  'letter',
  'message',
  'observer',
  'outside',
  'posted',
  'probe',
  'resumed',
  'tool',
  'not',
  'warning',
]
