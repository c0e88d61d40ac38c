/** Packets as the loopback server sends them. */
import type { Step } from '../wire-server.ts'
import { isBytes, type Packet } from './packets.ts'

/** A wait has no place on a socket: time there is real. */
export function stepOf(packet: Packet): Step {
  if (isBytes(packet)) return packet
  if ('wait' in packet) throw new Error('A body in which time passes is not for a socket')
  return { kind: packet.end === 'open' ? 'hang' : 'cut' }
}
