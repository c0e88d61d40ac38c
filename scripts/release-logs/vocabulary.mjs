/**
 * The words that this version can write into a log, by the place where they stand. Each list is held to the type it is
 * of, so that a word that is added there must be added here, and then to a life: the tests miss what no log shows.
 */

/** @typedef {import('../../dist/log.js').EventMap} Events */
/** @template {keyof any} T @typedef {Readonly<Record<T, true>>} Words */
/** @typedef {Events['assistant/chunk']['chunk']} Chunk */
/** @typedef {Extract<Chunk, { type: 'finish' }>['reason']['kind']} Finish */

/** @type {Words<keyof Events | 'a plug-in’s'>} */
const types = {
  'agent/inbox/spliced': true,
  'turn/start': true,
  'turn/cancel': true,
  'turn/end': true,
  'step/start': true,
  'step/end': true,
  'assistant/message': true,
  'llm/retry': true,
  'llm/retry-started': true,
  'tool/call': true,
  'tool/approval-requested': true,
  'tool/approval-resolved': true,
  'tool/dispatch': true,
  'tool/result': true,
  'session/resumed': true,
  'session/suspended': true,
  'session/end-seed': true,
  'user/message': true,
  'assistant/chunk': true,
  'request/header': true,
  'request/context': true,
  'tool/late-result': true,
  'agent/hook-failed': true,
  'a plug-in’s': true,
}

/** @type {Words<Events['turn/end']['reason']['kind']>} */
const reasons = {
  completed: true,
  blocked: true,
  error: true,
  aborted: true,
  'max-tokens': true,
  'max-steps': true,
  limit: true,
  'repeated-call': true,
  interrupted: true,
  'stopped-by-policy': true,
}

/** @type {Words<Events['step/end']['outcome']['kind']>} */
const outcomes = {
  completed: true,
  'tool-calls': true,
  concluded: true,
  'max-tokens': true,
  aborted: true,
  interrupted: true,
  error: true,
}

/** @type {Words<Events['turn/cancel']['cause']['kind']>} */
const causes = { user: true, parent: true, hook: true, limit: true, 'repeated-call': true, disposed: true }

/** @type {Words<Chunk['type']>} */
const chunks = {
  'block-start': true,
  'text-delta': true,
  'reasoning-delta': true,
  'tool-call-delta': true,
  'block-end': true,
  usage: true,
  finish: true,
}

/** @type {Words<Finish>} */
const finishes = { stop: true, 'tool-calls': true, 'max-tokens': true, error: true, aborted: true }

/** @type {Words<Events['tool/dispatch']['onCrash']>} */
const onCrash = { unknown: true, rerun: true, ask: true, probe: true }

/** @type {Words<Events['tool/approval-resolved']['decision']>} */
const decisions = { approved: true, denied: true, expired: true }

/** @type {Words<Events['tool/approval-requested']['purpose']>} */
const purposes = { run: true, rerun: true }

/** @type {Words<Events['llm/retry']['mode']>} */
const modes = { normal: true, always: true }

/** @type {Words<Events['session/resumed']['recovery']>} */
const recoveries = { continue: true, interrupt: true }

/** @type {Words<Events['request/header']['reason']>} */
const headers = { initial: true, resume: true, change: true }

/** @type {Words<Events['agent/inbox/spliced']['queue']>} */
const queues = { 'next-turn': true, 'next-step': true }

/** @type {Words<Events['assistant/message']['calls'][number]['mode']>} */
const callModes = { parallel: true, exclusive: true }

/** @type {Words<import('../../dist/machines.js').Call['status']>} */
const calls = { planned: true, called: true, awaiting: true, dispatched: true, settled: true }

/** Of the chart; `turnOpen` and `stepClosed` are passed through within a batch, and end no log. */
const states = {
  idle: true,
  turnOpen: true,
  preStep: true,
  'stepRequest.streaming': true,
  'stepRequest.waiting': true,
  toolExec: true,
  stepClosed: true,
  turnStopping: true,
}
const { turnOpen: _, stepClosed: __, ...ends } = states

export const VOCABULARY = {
  'event type': Object.keys(types),
  'turn/end reason': Object.keys(reasons),
  'step/end outcome': Object.keys(outcomes),
  'turn/cancel cause': Object.keys(causes),
  'chunk type': Object.keys(chunks),
  'finish kind': Object.keys(finishes),
  'tool/dispatch onCrash': Object.keys(onCrash),
  'approval decision': Object.keys(decisions),
  'approval purpose': Object.keys(purposes),
  'llm/retry mode': Object.keys(modes),
  'session/resumed recovery': Object.keys(recoveries),
  'request/header reason': Object.keys(headers),
  queue: Object.keys(queues),
  'call mode': Object.keys(callModes),
  'call status at the end': Object.keys(calls),
  'state on the way': Object.keys(states),
  'state at the end': Object.keys(ends),
}
