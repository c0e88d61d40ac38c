/** The mailbox of a session: what became of its commands is kept for a while, what they said is not. */
import { OUTCOMES_KEPT } from '../outcomes.ts'
import type { Connection } from './driver.ts'
import type { AppendRequest } from './protocol.ts'

/** The first outcome of a command is the one that stays. */
export function takeCommands(connection: Connection, { session, takes }: AppendRequest): void {
  for (const { id, outcome } of takes) {
    connection
      .statement(
        `UPDATE mailbox SET outcome = ?, command = '', taken_at = ? WHERE session = ? AND id = ? AND outcome IS NULL`,
      )
      .run(outcome, Date.now(), session, id)
  }
}

/** Forgets the outcomes that nobody can ask for any more. */
export function clearMail(connection: Connection, session: number): void {
  connection
    .statement(
      `DELETE FROM mailbox WHERE session = ? AND taken_at <= ? AND n <= (
         SELECT n FROM mailbox WHERE session = ? AND outcome IS NOT NULL ORDER BY n DESC LIMIT 1 OFFSET ?)`,
    )
    .run(session, Date.now() - OUTCOMES_KEPT.ms, session, OUTCOMES_KEPT.last)
}
