/** A workspace in a temp folder, and calls of its tools as the loop makes them: parsed, run, rendered. */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { ToolContext } from '../../../../src/services/tools/contract.ts'
import { type WorkspaceOptions, workspaceTools } from '../../../../src/services/tools/workspace/workspace-tools.ts'

/** A folder that is gone after the test. */
export function tempFolder(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'pawl-tools-')))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Resolves to the text of the result; rejects with what the body threw, or with why its arguments are invalid. */
export type Call = (name: string, args: object, signal?: AbortSignal) => Promise<string>

export function callerOf(options: WorkspaceOptions): Call {
  const tools = workspaceTools(options)
  return async (name, args, signal = new AbortController().signal) => {
    const tool = tools.find((one) => one.name === name)
    if (tool === undefined) throw new Error(`no tool ${name}`)
    const parsed = await tool.parse(args)
    if (parsed.kind === 'invalid') throw new Error(parsed.message)
    const rendered = await tool.render(await tool.execute(parsed.args, contextOf(signal)))
    if (rendered.kind === 'invalid') throw new Error(rendered.message)
    return rendered.content.map((block) => (block.type === 'text' ? block.text : '')).join('')
  }
}

function contextOf(signal: AbortSignal): ToolContext {
  const receipt = { id: 'm', accepted: Promise.resolve({ seq: 0 }) }
  return {
    signal,
    sessionId: 's',
    turn: 1,
    step: 1,
    callId: 'c',
    run: 1,
    idempotencyKey: 'k',
    steer: () => receipt,
    inject: () => receipt,
    addContext: () => undefined,
    concludeTurn: () => undefined,
    progress: () => undefined,
  }
}
