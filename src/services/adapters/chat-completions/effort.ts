/** An effort in the words of a server. */
import type { Dialect } from './dialect.ts'
import { isOff } from './reasoning-back.ts'

type Form = NonNullable<Dialect['effort']>
type Fields = Readonly<Record<string, unknown>>

/** The fields of the body that say it; none where none is set. */
export const wireEffort = (effort: string | undefined, form: Form = 'reasoning_effort'): Fields =>
  effort === undefined ? {} : FORMS[form](effort)

const FORMS: Readonly<Record<Form, (effort: string) => Fields>> = {
  none: () => ({}),
  reasoning_effort: (effort) => ({ reasoning_effort: effort }),
  reasoning: (effort) => ({ reasoning: isOff(effort) ? { enabled: false } : { effort } }),
  thinking: (effort) => ({ ...switched(effort), ...(!isOff(effort) && { reasoning_effort: effort }) }),
  'thinking-only': (effort) => switched(effort),
  enable_thinking: (effort) => ({ enable_thinking: !isOff(effort) }),
  chat_template_kwargs: (effort) => ({ chat_template_kwargs: { enable_thinking: !isOff(effort) } }),
}

const switched = (effort: string): Fields => ({ thinking: { type: isOff(effort) ? 'disabled' : 'enabled' } })
