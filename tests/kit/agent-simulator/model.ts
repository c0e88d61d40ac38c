/** A simulated model of one process: it says what its plan says, when the scheduler lets it, and checks what it was asked. */
import { canonicalJson, type Json } from '../../../src/log/json.ts'
import type { StreamChunk } from '../../../src/log/messages.ts'
import { unpaired } from '../../../src/log/projections/pairing.ts'
import { rebuildRequest } from '../../../src/log/rebuild.ts'
import type { LlmRequest } from '../../../src/log/requests.ts'
import type { ModelAdapter } from '../../../src/services/llm/adapter.ts'
import { pairs } from '../pairing.ts'
import { type Move, planOf } from './answers.ts'
import type { Truth } from './mirror.ts'
import { never, type SimProcess } from './world.ts'

export const simulatedModel = (truth: Truth, process: SimProcess): ModelAdapter => ({
  provider: 'sim',
  model: 'sim',
  stream(request, { signal }) {
    checkRequest(truth, process, request)
    const { world } = truth
    if (world.mishap('model throws at once', 0.01)) throw new Error('The model threw at once')
    return speak(truth, process, request, signal)
  },
})

async function* speak(
  truth: Truth,
  process: SimProcess,
  { sessionId }: LlmRequest,
  signal: AbortSignal,
): AsyncGenerator<StreamChunk, void, void> {
  const { world } = truth
  const plan = planOf(world)
  const session = truth.sessions.get(sessionId)
  if (plan.garbled && session !== undefined) session.garbled = true
  world.count('requests')
  const deaf = world.mishap('model ignores its signal', 0.1)
  const waits = deaf ? {} : { signal }
  // Some say all at once what others take their time for.
  const slow = plan.moves.length < 30 && world.tape.chance(0.4)
  let label = `the model of ${sessionId} ${plan.name}`
  for (const move of plan.moves) {
    if (slow || move === plan.moves[0]) {
      if ((await world.turn(process, label, waits)) === 'aborted') return
      label = `the model of ${sessionId} goes on`
    }
    if (!process.alive) return never()
    yield await done(move, deaf ? undefined : signal)
  }
}

async function done(move: Move, signal: AbortSignal | undefined): Promise<StreamChunk> {
  switch (move.kind) {
    case 'chunk':
      return move.chunk
    case 'throw':
      throw move.error
    case 'hang':
      return signal === undefined ? never() : whenAborted(signal)
  }
}

/** As `fetch` does: it rejects with the signal's reason. */
const whenAborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason)
    else signal.addEventListener('abort', () => reject(signal.reason), { once: true })
  })

/** The request is the one that the log gives at this point, all of it durable, and one that a provider takes. */
function checkRequest(truth: Truth, process: SimProcess, request: LlmRequest): void {
  const { world, sessions } = truth
  const session = sessions.get(request.sessionId)
  if (session === undefined) return void world.breach('REQUEST-OF-NOBODY', `no session ${request.sessionId}`)
  const known = session.log.slice(0, process.known.get(session.id) ?? 0)
  const { context } = truth.stateAt(session, known.length)
  const { turn, step, attempt } = context
  world.count('requests checked')
  try {
    const rebuilt = rebuildRequest(known, { turn, step, attempt }, { sessionId: session.id })
    const same = canonicalJson(rebuilt as unknown as Json) === canonicalJson(request as unknown as Json)
    world.must(same, 'REQUEST-NOT-IN-LOG', () => `${session.id} ${turn}.${step}.${attempt}: another than the log gives`)
  } catch (error) {
    world.breach('REQUEST-NOT-IN-LOG', `${session.id} ${turn}.${step}.${attempt}: ${String(error)}`)
  }
  const wrong =
    unpaired(request.messages) ?? pairs(request.messages).find(({ calls, results }) => `${calls}` !== `${results}`)
  world.must(wrong === undefined, 'REQUEST-PAIRING', () => `${session.id}: ${JSON.stringify(wrong)}`)
}
