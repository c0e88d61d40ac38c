/** Sections of text: ordered, their variables filled in strictly, the empty ones left out. */
import { PawlError } from '../../log/errors.ts'

/** A named piece of a prompt. Lower `order` comes first (0); equal ones stay as given. */
export interface Section {
  readonly name: string
  readonly order?: number
  readonly text: string | (() => string | Promise<string>)
}

export interface RenderedSection {
  readonly name: string
  readonly text: string
}

/**
 * The sections' texts in order, `{{name}}` replaced.
 * @throws PawlError UNKNOWN_VARIABLE for a variable that is not there or malformed; what a section's function throws.
 */
export async function renderSections(
  sections: readonly Section[],
  variables: Readonly<Record<string, string>>,
): Promise<readonly RenderedSection[]> {
  const ordered = [...sections].sort((a, b) => (a.order ?? 0) - (b.order ?? 0))
  const rendered: RenderedSection[] = []
  for (const { name, text } of ordered) {
    const filled = interpolate(typeof text === 'function' ? await text() : text, variables, name)
    if (filled.trim() !== '') rendered.push({ name, text: filled })
  }
  return rendered
}

/** Sections as one text, a blank line between them; undefined when there is none. */
export const joinSections = (sections: readonly RenderedSection[]): string | undefined =>
  sections.length === 0 ? undefined : sections.map(({ text }) => text).join('\n\n')

const interpolate = (text: string, variables: Readonly<Record<string, string>>, section: string): string =>
  text.replace(/\{\{([^{}]*)\}\}/g, (_, inner: string) => {
    const name = inner.trim()
    const value = Object.hasOwn(variables, name) ? variables[name] : undefined
    if (value !== undefined) return value
    throw new PawlError(`Section "${section}" names the variable "${name}", which is not given`, 'UNKNOWN_VARIABLE')
  })
