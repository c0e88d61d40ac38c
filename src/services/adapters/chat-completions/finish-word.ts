/** Why a server says it stopped: its own word, and what that means. */
import type { LlmFailure } from '../../../log/messages.ts'
import type { FinishWord } from './dialect.ts'
import { codeOfWord } from './wording.ts'

/** A word of the server. One that nobody knows is a failure of that name. */
export interface Meaning {
  readonly kind: FinishWord | 'unknown'
  readonly word: string
}

/** What `word` means, by the dialect's words, else by the wire's own. */
export function meaningOf(word: string, words: Readonly<Record<string, FinishWord>>): Meaning {
  const own = Object.hasOwn(words, word) ? words[word] : undefined
  return { kind: own ?? KNOWN.find((known) => known === word) ?? 'unknown', word }
}

const KNOWN: readonly FinishWord[] = ['stop', 'tool_calls', 'length', 'content_filter']

/** The failure of an answer that was stopped for `meaning`. */
export const stoppedFor = ({ kind, word }: Meaning): LlmFailure => ({
  message: `The provider stopped the answer: ${word.slice(0, 200)}`,
  code: CODES[kind] ?? codeOfWord(word),
})

const CODES: Readonly<Record<string, string>> = {
  content_filter: 'CONTENT_FILTER',
  overflow: 'CONTEXT_WINDOW_EXCEEDED',
  failed: 'SERVER',
}
