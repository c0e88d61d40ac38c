/** `pawl cassette`: a session's log as a recording, told apart from one that could not be played before it is printed. */
import type { SessionEvent } from '../log/events.ts'
import { recordingOf } from '../services/adapters/cassette/recording.ts'
import { count } from '../services/terminal/text.ts'
import type { Console } from './console.ts'
import { readSession } from './reading.ts'
import { openExistingStore, sessionName, storePath } from './settings.ts'

/**
 * Prints the whole log, an event a line. It opens nothing, so another process may own the session.
 * @throws SessionNotFound; InvalidLog, LogTooNew or CASSETTE_EMPTY for what no cassette plays
 */
export async function cassette(session: string, flags: { readonly store?: string }, console: Console): Promise<number> {
  await using store = openExistingStore(storePath(flags.store))
  const events: SessionEvent[] = []
  for await (const event of readSession(store, sessionName(session))) events.push(event)
  const { attempts, models } = recordingOf(events)
  for (const event of events) {
    console.value(event)
    await console.ready()
    if (console.closed) return 0
  }
  const names = models.map(({ provider, model }) => `${provider} ${model}`).join(', ')
  const cut = attempts.at(-1)?.ending.kind === 'cut' ? ', the last of them not over' : ''
  console.note(`${count(attempts.length, 'attempt')} of ${names}${cut}`)
  console.note('a recording holds the whole conversation: mind who may read it')
  return 0
}
