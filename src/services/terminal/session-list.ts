/** Sessions in a table, the one changed last at the end, where the eye is. */
import type { SessionSummary } from '../../log/store.ts'
import { count, dateTime, oneLine, type Palette } from './text.ts'

/** The table's lines, its head first; none for no sessions. */
export function sessionLines(sessions: readonly SessionSummary[], palette: Palette): readonly string[] {
  if (sessions.length === 0) return []
  const rows = [...sessions].sort((a, b) => a.updatedAt - b.updatedAt).map(cells)
  const head = ['SESSION', 'STATE', 'TURNS', 'EVENTS', 'CHANGED', 'LAST END']
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)))
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd()
  return [palette.dim(line(head)), ...rows.map(line)]
}

function cells(session: SessionSummary): readonly string[] {
  const { id, turns, head, updatedAt, lastReason } = session
  return [oneLine(id, 40), stateOf(session), String(turns), String(head), dateTime(updatedAt), lastReason ?? '-']
}

/** What it does now; `stopped` is work that waits for somebody to resume it. */
function stateOf({ state, waitingFor, owned, owed }: SessionSummary): string {
  if (state === 'waiting') return `waits: ${waitingFor ?? 'approval'}`
  if (owned) return state
  return state === 'running' || owed ? 'stopped' : state
}

/** Totals under the table. */
export function sessionTotals(sessions: readonly SessionSummary[]): string {
  const owed = sessions.filter((session) => session.owed && !session.owned).length
  return `${count(sessions.length, 'session')}${owed > 0 ? `, ${owed} to carry on with \`pawl resume SESSION\`` : ''}`
}
