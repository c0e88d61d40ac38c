/** The system text and the tools of a step, assembled anew for each. */
import { toJson } from '../../log/json.ts'
import type { Prompt } from '../hooks/contract.ts'
import { callHook } from '../hooks/failure.ts'
import type { AgentRuntime } from '../runtime.ts'
import { joinSections, renderSections } from './sections.ts'

/**
 * Tools stand by name, so that the order of registration never shows. The prompt is a frozen copy: what is shown to
 * hooks is what is asked with.
 * @throws what the hook and the sections throw; NotJson.
 */
export async function assemblePrompt(runtime: AgentRuntime, turn: number, step: number): Promise<Prompt> {
  const { settings, tools } = runtime
  const payload = { turn, step, signal: runtime.turn.signal }
  const prompt = await callHook(runtime, 'system-prompt/assemble', { turn, step }, payload, async () => {
    const system = joinSections(await renderSections(settings.system, settings.variables))
    const schemas = [...tools.values()].map((tool) => tool.schema).sort((a, b) => (a.name < b.name ? -1 : 1))
    return Object.freeze({ ...(system === undefined ? {} : { system }), tools: Object.freeze(schemas) })
  })
  return toJson(prompt) as unknown as Prompt
}
