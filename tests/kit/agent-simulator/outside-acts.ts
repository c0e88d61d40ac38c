/** What those do who have the store only: they leave commands, wait for what became of them, and read. */

import { argumentsDigest } from '../../../src/log/digest.ts'
import type { CommandOutcome, PostedCommand } from '../../../src/log/store.ts'
import type { Letter, Scene } from './scene.ts'

/** A command that makes sense to somebody who read the log a moment ago; now and then one that does not. */
function command(scene: Scene, session: string): PostedCommand {
  const { world, truth } = scene
  const { tape } = world
  const id = world.id('cmd')
  const context = truth.sessions.get(session)?.snapshot().context
  const asked = context?.calls.find(({ status }) => status === 'awaiting')
  if (asked !== undefined && tape.chance(0.5)) {
    const digest = tape.chance(0.9) ? argumentsDigest(asked.arguments) : 'sha256:0'
    return { id, kind: tape.pick(['approve', 'deny']), callId: asked.callId, run: asked.run, digest }
  }
  const kind = tape.weighted([
    [6, 'followup'],
    [6, 'steer'],
    [3, 'inject'],
    [5, 'cancel'],
    [2, 'wake'],
    [1, 'approve'],
    [1, 'malformed'],
  ] as const)
  switch (kind) {
    case 'cancel': {
      const turn = Math.max(1, (context?.turn ?? 0) + tape.pick([0, 0, 0, -1, 1]))
      return { id, kind, turn, cause: { kind: 'user' }, ...(tape.chance(0.3) ? { keepInbox: true } : {}) }
    }
    case 'wake':
      return { id, kind }
    case 'approve':
      return { id, kind, callId: 'c-none', run: 0, digest: 'sha256:0' }
    case 'malformed':
      return { id, kind: 'followup', message: { id, role: 'user' } } as unknown as PostedCommand
    default: {
      const content = [{ type: 'text', text: `${kind} from outside` }] as const
      return { id, kind, message: { id: `m-${id}`, role: 'user', content, source: { kind: 'user' } } }
    }
  }
}

export async function actFromOutside(scene: Scene, session: string): Promise<void> {
  const { world } = scene
  const kind = world.tape.weighted([
    [10, 'post'],
    [3, 'post again'],
    [5, 'await outcome'],
    [2, 'subscribe'],
    [1, 'list'],
  ] as const)
  world.tell(`${scene.client.name}: ${kind} at ${session}`)
  world.count(`outside ${kind}`)
  const letter = world.tape.pick([undefined, ...scene.letters])
  await world.run(scene.client, () => {
    if (kind === 'post again' && letter !== undefined) post(scene, letter)
    else if (kind === 'await outcome' && letter !== undefined) awaitOutcome(scene, letter)
    else if (kind === 'subscribe') subscribe(scene, session)
    else if (kind === 'list') list(scene)
    else {
      const sent: Letter = { session, command: command(scene, session), sent: false }
      scene.letters.push(sent)
      world.count(`posted ${sent.command.kind}`)
      post(scene, sent)
    }
  })
}

function post(scene: Scene, letter: Letter): void {
  const { session, command } = letter
  scene.expect(scene.client, `post of ${command.id}`, scene.outside.post(session, command), () => {
    letter.sent = true
  })
}

function awaitOutcome(scene: Scene, letter: Letter): void {
  // A store says what became of what it has.
  if (!letter.sent) return
  const { session, command } = letter
  const outcome = scene.outside.outcome(session, command.id, new AbortController().signal)
  scene.expect(scene.client, `outcome of ${command.id}`, outcome, (told) => heard(scene, letter, told))
}

/** Whoever asks, and whenever: a command has one outcome. */
export function heard({ world }: Scene, letter: Letter, told: CommandOutcome): void {
  world.count('outcomes heard')
  const before = letter.outcome
  letter.outcome ??= told
  const same = before === undefined || JSON.stringify(before) === JSON.stringify(told)
  world.must(same, 'OUTCOME', () => `${letter.command.id}: ${JSON.stringify(before)}, then ${JSON.stringify(told)}`)
}

function subscribe(scene: Scene, session: string): void {
  const { truth, client, world } = scene
  const from = world.tape.chance(0.5) ? 0 : (truth.sessions.get(session)?.log.length ?? 0)
  const leaves = new AbortController()
  const reading = async (): Promise<void> => {
    let next = from
    for await (const event of scene.outside.subscribe(session, { from, signal: leaves.signal })) {
      world.must(event.seq === next++, 'READ-GAP', () => `${client.name} of ${session}: seq ${event.seq}`)
      truth.saw(client, session, event, 'a subscriber')
    }
  }
  scene.subscriptions.push(leaves)
  scene.expect(client, `subscription to ${session}`, reading())
}

function list(scene: Scene): void {
  const listing = async (): Promise<void> => {
    for await (const { id, head } of scene.outside.list()) {
      const stored = scene.truth.sessions.get(id)?.log.length ?? 0
      scene.world.must(head <= stored, 'LIST', () => `${id} has ${stored} events, and its summary says ${head}`)
    }
  }
  scene.expect(scene.client, 'listing', listing())
}
