/** What is to be masked in a text: spans of it, found by several rules, joined where they overlap. */

/** What stands in place of a secret. */
export const MARK = '[secret]'

/** From `start` up to `end`, exclusive; `as` replaces it where it is not overlapped by anything longer. */
export interface Span {
  /** Where what says that it is a secret begins: at `start`, or before it. */
  readonly from: number
  readonly start: number
  readonly end: number
  readonly as: string
}

/** Ascending, none touching the inside of another: what overlaps is one, so that no half of a secret is left. */
export function joined(spans: readonly Span[]): readonly Span[] {
  if (spans.length < 2) return spans
  const sorted = [...spans].sort((a, b) => a.start - b.start || b.end - a.end)
  const out: Span[] = []
  for (const span of sorted) {
    const last = out.at(-1)
    if (last === undefined || span.start >= last.end) out.push(span)
    else out[out.length - 1] = both(last, span)
  }
  return out
}

const both = (first: Span, second: Span): Span => ({
  from: Math.min(first.from, second.from),
  start: first.start,
  end: Math.max(first.end, second.end),
  as: second.end > first.end ? MARK : first.as,
})

/** The last place, at most `to`, that is within no span nor in what leads to one. */
export function outside(spans: readonly Span[], to: number): number {
  const crossed = spans.find(({ from, end }) => from < to && to < end)
  return crossed === undefined ? to : outside(spans, crossed.from)
}

/** `text` from `from` to `to` with the spans in it replaced; they are joined, and none crosses either end. */
export function replaced(text: string, spans: readonly Span[], from = 0, to = text.length): string {
  let out = ''
  let at = from
  for (const { start, end, as } of spans) {
    if (start < from || end > to) continue
    out += text.slice(at, start) + as
    at = end
  }
  return out + text.slice(at, to)
}
