/** The system text and the tools of a step, assembled anew for each. */
import { frozenJson } from '../../log/json.ts'
import type { ToolSchema } from '../../log/requests.ts'
import type { Prompt } from '../hooks/contract.ts'
import { callHook } from '../hooks/failure.ts'
import type { AgentRuntime } from '../runtime.ts'
import type { Tool } from '../tools/contract.ts'
import { joinSections, renderSections } from './sections.ts'

/**
 * Tools stand by name, so that the order of registration never shows. The prompt is frozen all through: what is shown
 * to hooks is what is asked with. Its parts are the very ones of the step before where nothing changed.
 * @throws what the hook and the sections throw; NotJson.
 */
export async function assemblePrompt(runtime: AgentRuntime, turn: number, step: number): Promise<Prompt> {
  const { settings, tools } = runtime
  const payload = { turn, step, signal: runtime.turn.signal }
  return callHook(runtime, 'system-prompt/assemble', { turn, step }, payload, async () => {
    const system = joinSections(await renderSections(settings.system, settings.variables))
    return Object.freeze({ ...(system === undefined ? {} : { system }), tools: schemasOf(tools) })
  })
}

/** The schemas that were last shown of each set of tools. */
const shown = new WeakMap<ReadonlyMap<string, Tool>, readonly ToolSchema[]>()

function schemasOf(tools: ReadonlyMap<string, Tool>): readonly ToolSchema[] {
  const known = shown.get(tools)
  if (known?.length === tools.size && known.every((schema) => tools.get(schema.name)?.schema === schema)) return known
  const schemas = [...tools.values()].map(({ schema }) => frozenJson(schema))
  const sorted = Object.freeze(schemas.sort((a, b) => (a.name < b.name ? -1 : 1)))
  shown.set(tools, sorted)
  return sorted
}
