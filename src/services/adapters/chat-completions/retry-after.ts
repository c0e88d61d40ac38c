/** When a server says to come back, in the dialects it says it in. */

type Headers = { get(name: string): string | null }

/** A past date means now; a wait has to be more than nothing to be one. */
const NOW_MS = 1

/**
 * The wait a response asks for, in ms, always finite and above zero; undefined if it asks for none that can be read.
 * Milliseconds win over RFC 9110's `Retry-After` (seconds or a date), which wins over a spent rate limit's reset (of a 429).
 */
export function retryAfterMs(headers: Headers, { status, now }: { status: number; now: number }): number | undefined {
  return (
    positive(numberIn(headers.get('retry-after-ms'))) ??
    retryAfter(headers.get('retry-after'), now) ??
    (status === 429 ? reset(headers, now) : undefined)
  )
}

function retryAfter(value: string | null, now: number): number | undefined {
  const seconds = numberIn(value)
  if (seconds !== undefined) return positive(seconds * 1_000)
  // Date.parse reads almost anything as a date; one of HTTP begins with the name of a day.
  const date = /^(?:mon|tue|wed|thu|fri|sat|sun)/i.test(value ?? '') ? Date.parse(value ?? '') : Number.NaN
  return Number.isNaN(date) ? undefined : Math.max(NOW_MS, date - now)
}

function reset(headers: Headers, now: number): number | undefined {
  const waits = ['', '-requests', '-tokens']
    .filter((of) => of === '' || headers.get(`x-ratelimit-remaining${of}`) === '0')
    .map((of) => resetIn(headers.get(`x-ratelimit-reset${of}`), now))
    .filter((wait) => wait !== undefined)
  return waits.length === 0 ? undefined : Math.max(...waits)
}

/** Such a header is a duration (`6m0s`, `20ms`), seconds, or an epoch in seconds or in ms. */
function resetIn(value: string | null, now: number): number | undefined {
  const number = numberIn(value)
  if (number === undefined) return positive(duration(value ?? ''))
  if (number > 1e12) return Math.max(NOW_MS, number - now)
  if (number > 1e9) return Math.max(NOW_MS, number * 1_000 - now)
  return positive(number * 1_000)
}

const UNITS_MS: Readonly<Record<string, number>> = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 }

function duration(value: string): number | undefined {
  if (!/^(?:\d+(?:\.\d+)?(?:ms|[dhms]))+$/.test(value)) return undefined
  const parts = value.matchAll(/(\d+(?:\.\d+)?)(ms|[dhms])/g)
  return [...parts].reduce((sum, [, number, unit]) => sum + Number(number) * (UNITS_MS[unit ?? ''] ?? 0), 0)
}

/** A header that came several times is a list: the longest wait is one that all of them allow. */
function numberIn(value: string | null): number | undefined {
  const items = value?.split(',').map((item) => item.trim()) ?? []
  const numbers = items.filter((item) => /^\d+(?:\.\d+)?$/.test(item)).map(Number)
  return numbers.length > 0 && numbers.length === items.length ? Math.max(...numbers) : undefined
}

const positive = (ms: number | undefined): number | undefined =>
  ms !== undefined && Number.isFinite(ms) && ms > 0 ? ms : undefined
