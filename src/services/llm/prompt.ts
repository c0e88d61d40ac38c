/** The system text and the tools of a step, assembled anew for each. */
import { toJson } from '../../log/json.ts'
import type { Prompt } from '../hooks/contract.ts'
import { callHook } from '../hooks/failure.ts'
import type { AgentRuntime } from '../runtime.ts'
import type { Tool } from '../tools/contract.ts'
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
    const system =
      settings.system.length === 0 ? undefined : joinSections(await renderSections(settings.system, settings.variables))
    return promptOf(tools, system)
  })
  return own.has(prompt) ? prompt : (toJson(prompt) as unknown as Prompt)
}

/** The last prompt of each set of tools, frozen all through: most steps have the same as the step before. */
const last = new WeakMap<ReadonlyMap<string, Tool>, Prompt>()
const own = new WeakSet<Prompt>()

function promptOf(tools: ReadonlyMap<string, Tool>, system: string | undefined): Prompt {
  const known = last.get(tools)
  if (known !== undefined && known.system === system) return known
  const schemas =
    known?.tools ?? toJson([...tools.values()].map((tool) => tool.schema).sort((a, b) => (a.name < b.name ? -1 : 1)))
  const prompt = Object.freeze({ ...(system === undefined ? {} : { system }), tools: schemas }) as unknown as Prompt
  last.set(tools, prompt)
  own.add(prompt)
  return prompt
}
