/**
 * What is true right now, told to the model as a message: only when it differs from what the conversation last said,
 * so that the system text, and with it the provider's cache, stays as it is.
 */
import type { Message, TextBlock, UserMessage } from '../../log/messages.ts'
import type { AgentRuntime } from '../runtime.ts'
import { joinSections, renderSections } from './sections.ts'

const OWNER = 'pawl/runtime-context'
const PREAMBLE = 'Current context. It supersedes every earlier snapshot of it.'
const CLEARED = 'The earlier context snapshot no longer applies; there is none now.'

/** The snapshot to propose, or undefined if the conversation already says so. */
export async function proposeContext(runtime: AgentRuntime): Promise<UserMessage | undefined> {
  const { session, settings, newId } = runtime
  const sections = await renderSections(settings.context, settings.variables)
  const retained = lastSnapshot(session.messages())
  const body = joinSections(sections)
  if (body === undefined) {
    return retained === undefined || retained === CLEARED ? undefined : snapshot(newId(), CLEARED)
  }
  const text = `${PREAMBLE}\n\n${body}`
  return text === retained ? undefined : snapshot(newId(), text, sections)
}

const snapshot = (id: string, text: string, sections?: readonly { name: string; text: string }[]): UserMessage => ({
  id,
  role: 'user',
  content: [{ type: 'text', text }],
  source: { kind: 'plugin', plugin: OWNER, ...(sections === undefined ? {} : { form: 'snapshot', sections }) },
})

/** The text of the newest snapshot still in the conversation; '' for one that is malformed. */
function lastSnapshot(messages: readonly Message[]): string | undefined {
  for (let i = messages.length - 1; i >= 0; i--) {
    const { source, content } = messages[i] as Message
    if (source.kind !== 'plugin' || source.plugin !== OWNER) continue
    const [block] = content
    return content.length === 1 && block?.type === 'text' ? (block as TextBlock).text : ''
  }
  return undefined
}
