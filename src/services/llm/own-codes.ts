/** Codes that say what Pawl did, or saw by itself. No word of a provider becomes one: a reader would take it for ours. */

const OWN_CODES: ReadonlySet<string> = new Set([
  // How a request ended.
  'ABORTED',
  'UNKNOWN',
  'NO_ADAPTER',
  'TRANSPORT',
  'STREAM_CLOSED',
  'EMPTY_RESPONSE',
  'MALFORMED_RESPONSE',
  'RESPONSE_TOO_LARGE',
  'UNSUPPORTED_CONTENT',
  'UNSUPPORTED_REASONING_EFFORT',
  'MISSING_CREDENTIAL',
  'INVALID_CREDENTIAL',
  'SCRIPT_EXHAUSTED',
  'CASSETTE_EMPTY',
  'CASSETTE_EXHAUSTED',
  'CASSETTE_MISMATCH',
  'ATTEMPT_NOT_FOUND',
  // What became of a call.
  'UNKNOWN_TOOL',
  'INVALID_ARGS',
  'INVALID_TOOL_OUTPUT',
  'TOOL_TIMEOUT',
  'RESULT_TOO_LARGE',
  'ABORTED_BEFORE_DISPATCH',
  'TOOL_NOT_STARTED',
  'TOOL_OUTCOME_UNKNOWN',
  // What is thrown, or refused.
  'SESSION_BUSY',
  'FENCED',
  'SEQ_CONFLICT',
  'SESSION_NOT_FOUND',
  'STORE_FAILURE',
  'LOG_TOO_NEW',
  'INVALID_BOUNDARY',
  'SESSION_ALREADY_EXISTS',
  'NOT_JSON',
  'INVALID_EVENT',
  'INVALID_LOG',
  'TOO_LARGE',
  'INVALID_OPTION',
  'UNKNOWN_VARIABLE',
  'DUPLICATE_MESSAGE',
  'AGENT_CLOSED',
  'OVERLOADED',
  'HOOK_MISUSE',
  'MESSAGE_REJECTED',
  'MESSAGE_CANCELED',
  'APPROVAL_NOT_PENDING',
  'APPROVAL_ALREADY_RESOLVED',
  'APPROVAL_DIGEST_MISMATCH',
  'APPROVAL_EXPIRED',
  'TURN_OVER',
  'SESSION_IDLE',
])

/**
 * True for a code that only Pawl gives. Those that say what a provider did (AUTH, QUOTA, RATE_LIMIT, SERVER, TIMEOUT,
 * INVALID_REQUEST, CONTEXT_WINDOW_EXCEEDED, CONTENT_FILTER) are none: a provider may say them of itself.
 */
export const isOwnCode = (code: string): boolean => OWN_CODES.has(code)
