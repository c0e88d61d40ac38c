/** A message of a chat-completions request. */
export type WireMessage =
  | { readonly role: 'system' | 'developer' | 'user'; readonly content: string }
  | { readonly role: 'assistant'; readonly content?: string | null; readonly [key: string]: unknown }
  | { readonly role: 'tool'; readonly tool_call_id: string; readonly content: string }
