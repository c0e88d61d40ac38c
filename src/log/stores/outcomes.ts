/**
 * How long what became of a posted command can be asked for: a day after it was taken, and as long as it is among the last
 * hundred of its session. Until then a command that is posted again under its id is the same command; later it is another.
 */
export const OUTCOMES_KEPT = { ms: 86_400_000, last: 100 }
