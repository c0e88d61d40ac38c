/**
 * What is true right now, told to the model as a message: only when it differs from what the conversation last said,
 * so that the system text, and with it the provider's cache, stays as it is.
 */
import type { SessionEvent } from '../../log/events.ts'
import { toJson } from '../../log/json.ts'
import type { Message, TextBlock, UserMessage } from '../../log/messages.ts'
import type { AgentRuntime } from '../runtime.ts'
import { joinSections, renderSections } from './sections.ts'

const OWNER = 'pawl/runtime-context'
const PREAMBLE = 'Current context. It supersedes every earlier snapshot of it.'
const CLEARED = 'The earlier context snapshot no longer applies; there is none now.'

/** The snapshot to propose, or undefined if the conversation already says so. */
export async function proposeContext(runtime: AgentRuntime): Promise<UserMessage | undefined> {
  const { session, settings, newId, mask } = runtime
  // Neither a context to tell of nor one to take back: the conversation need not be looked through.
  if (settings.context.length === 0 && !runtime.contextStands) return undefined
  const sections = await renderSections(settings.context, settings.variables)
  const retained = lastSnapshot(session.messages())
  const body = joinSections(sections)
  if (body === undefined) {
    const stands = retained === undefined ? runtime.contextStands : retained !== CLEARED
    return stands ? snapshot(newId(), CLEARED) : undefined
  }
  // Masked as the log has it, or it would differ from what was said each time.
  const text = mask.text(`${PREAMBLE}\n\n${body}`)
  return text === retained ? undefined : snapshot(newId(), text, sections)
}

/**
 * Whether the conversation was last told of a context, and not since that there is none. A summary that takes the
 * snapshot's place may well repeat it, so it stands until it is taken back.
 */
export function contextStands(before: boolean, event: SessionEvent): boolean {
  if (event.type !== 'user/message' || !isOwned(event.data)) return before
  return textIn(event.data) !== CLEARED
}

/** Frozen: hooks are shown it. */
const snapshot = (id: string, text: string, sections?: readonly { name: string; text: string }[]): UserMessage =>
  toJson({
    id,
    role: 'user',
    content: [{ type: 'text', text }],
    source: { kind: 'plugin', plugin: OWNER, ...(sections === undefined ? {} : { form: 'snapshot', sections }) },
  }) as unknown as UserMessage

/** The text of the newest snapshot still in the conversation; '' for one that is malformed. */
function lastSnapshot(messages: readonly Message[]): string | undefined {
  for (let i = messages.length - 1; i >= 0; i--) {
    const message = messages[i] as Message
    if (isOwned(message)) return textIn(message)
  }
  return undefined
}

const isOwned = ({ source }: Message): boolean => source.kind === 'plugin' && source.plugin === OWNER

function textIn({ content }: Message): string {
  const [block] = content
  return content.length === 1 && block?.type === 'text' ? (block as TextBlock).text : ''
}
