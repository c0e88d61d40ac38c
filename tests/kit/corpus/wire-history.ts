/** What the strictest servers of this wire refuse in a history, so that no request may have it. */

interface WireMessage {
  readonly role?: unknown
  readonly content?: unknown
  readonly tool_call_id?: unknown
  readonly tool_calls?: readonly {
    readonly id?: unknown
    readonly function?: { readonly name?: unknown; readonly arguments?: unknown }
  }[]
}

/** Why a server would refuse the body's messages; undefined if none would. */
export function unsendable(body: Readonly<Record<string, unknown>>): string | undefined {
  const { messages } = body
  if (!Array.isArray(messages)) return 'no messages'
  let owed: readonly unknown[] = []
  for (const [i, message] of (messages as readonly WireMessage[]).entries()) {
    const wrong = message.role === 'tool' ? resultProblem(message, owed) : wordsProblem(message, owed)
    if (wrong !== undefined) return `message ${i}: ${wrong}`
    owed = message.role === 'tool' ? owed.slice(1) : (message.tool_calls ?? []).map(({ id }) => id)
  }
  return owed.length === 0 ? undefined : `the call ${owed[0]} has no result`
}

const resultProblem = ({ tool_call_id }: WireMessage, owed: readonly unknown[]): string | undefined =>
  owed[0] === tool_call_id ? undefined : `the result of ${tool_call_id} where ${owed[0] ?? 'none'} is owed`

function wordsProblem({ role, content, tool_calls }: WireMessage, owed: readonly unknown[]): string | undefined {
  if (owed.length > 0) return `the call ${owed[0]} has no result`
  if (typeof content !== 'string' && !Array.isArray(content)) return 'content is no text'
  if (role === 'assistant' && content === '' && tool_calls === undefined) return 'it says nothing'
  for (const call of tool_calls ?? []) {
    if (typeof call.id !== 'string' || call.id === '') return 'a call without an id'
    if (typeof call.function?.name !== 'string' || !/^[\w-]{1,64}$/.test(call.function.name))
      return 'a call without a name'
    if (!isObjectText(call.function.arguments)) return `arguments that are no object: ${call.function.arguments}`
  }
  return undefined
}

/** Several servers parse the arguments of past calls, and refuse the whole conversation if one does not parse. */
function isObjectText(text: unknown): boolean {
  try {
    const value: unknown = JSON.parse(String(text))
    return typeof text === 'string' && typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    // JSON.parse throws a SyntaxError and nothing else.
    return false
  }
}
