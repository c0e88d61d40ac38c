/** What `session/resumed` says of who resumed: the package's version and a hash of the chart it ran. */
import { createHash } from 'node:crypto'
import { agentMachine } from '../machines/agent.ts'

export const VERSION = '0.2.0'

/** 'sha256:' and 16 hex digits of the machine's states and transitions. Functions count by name: builds print them differently. */
export const chartHash: string = `sha256:${createHash('sha256')
  .update(JSON.stringify(agentMachine.config, (_, value) => (typeof value === 'function' ? nameOf(value) : value)))
  .digest('hex')
  .slice(0, 16)}`

function nameOf(value: { readonly name: string; readonly type?: unknown }): string {
  return typeof value.type === 'string' ? value.type : value.name
}
