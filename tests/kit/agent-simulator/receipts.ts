/** What the API tells of a message or a turn, held against the log. */
import type { Agent, Receipt, TurnResult } from '../../../src/agent.ts'
import type { SessionEvent } from '../../../src/log/events.ts'
import type { Host } from './host.ts'
import type { Scene } from './scene.ts'

/** Follows a receipt to its end. */
export function follow(scene: Scene, host: Host, receipt: Receipt): void {
  const { truth, world } = scene
  const { process, sessionId } = host
  const at = (seq: number): SessionEvent | undefined => truth.sessions.get(sessionId)?.log[seq]
  const label = (of: string): string => `${of} of ${receipt.id} in ${host.name}`
  scene.expect(process, label('accepted'), receipt.accepted, ({ seq }) => {
    world.count('receipts accepted')
    truth.isKnown(process, sessionId, seq, label('accepted'))
    world.must(inserts(at(seq), receipt.id), 'RECEIPT', () => `${label('accepted')}: seq ${seq} does not insert it`)
  })
  scene.expect(process, label('entered'), receipt.entered, (entered) => {
    if (entered.kind === 'dropped') return
    const event = at(entered.seq)
    truth.isKnown(process, sessionId, entered.seq, label('entered'))
    const fits =
      entered.kind === 'entered'
        ? event?.type === 'user/message' && event.data.id === receipt.id
        : event?.type === 'agent/inbox/spliced' && event.data.deleteCount > 0
    world.must(fits, 'RECEIPT', () => `${label('entered')}: ${entered.kind} at seq ${entered.seq}, ${event?.type}`)
  })
  scene.expect(process, label('turn'), receipt.turn, (result) => {
    if (result !== null) checkResult(scene, host, label('turn'), result)
  })
}

const inserts = (event: SessionEvent | undefined, id: string): boolean =>
  event?.type === 'agent/inbox/spliced' &&
  event.data.inserted.some((item) => item.kind === 'message' && item.message.id === id)

/** The end of the turn is durable, and its reason is that of the log. */
export function checkResult(scene: Scene, host: Host, label: string, { turn, reason }: TurnResult): void {
  const { truth, world } = scene
  const ended = truth.sessions
    .get(host.sessionId)
    ?.log.find((event) => event.type === 'turn/end' && event.data.turn === turn)
  if (ended?.type !== 'turn/end')
    return void world.breach('TURN-RESULT', `${label}: turn ${turn} has no end in the log`)
  truth.isKnown(host.process, host.sessionId, ended.seq, label)
  const same = JSON.stringify(ended.data.reason) === JSON.stringify(reason)
  world.must(same, 'TURN-RESULT', () => `${label}: ${JSON.stringify(reason)} and not that of seq ${ended.seq}`)
}

/** Reads what the agent shows as it comes. */
export function read(scene: Scene, host: Host, agent: Agent, live: boolean): void {
  const reading = async (): Promise<void> => {
    let next = 0
    for await (const event of agent.session.events({ live })) {
      scene.world.must(event.seq === next++, 'READ-GAP', () => `${host.name}: seq ${event.seq}`)
      scene.truth.saw(host.process, host.sessionId, event, live ? 'a live reader' : 'a reader')
    }
  }
  scene.expect(host.process, `reading ${host.name}`, reading())
}
