/** Prompts that say outright what to do, a line each: `run: npm test`, `write notes.txt: hello`, `read README.md`. */

export type Directive =
  | { readonly kind: 'run'; readonly command: string }
  | { readonly kind: 'write'; readonly path: string; readonly content: string }
  | { readonly kind: 'read'; readonly path: string }

/** The directives of a prompt in order; empty unless its first line is one. A line that is none continues the one before. */
export function directives(prompt: string): readonly Directive[] {
  const found: Directive[] = []
  for (const line of prompt.split('\n')) {
    const directive = directiveOf(line)
    const before = found.at(-1)
    if (directive) found.push(directive)
    else if (before === undefined) return []
    else found[found.length - 1] = continued(before, line)
  }
  return found
}

function directiveOf(line: string): Directive | undefined {
  const run = /^\s*run:\s*(\S.*)$/i.exec(line)
  if (run) return { kind: 'run', command: (run[1] ?? '').trim() }
  const write = /^\s*write\s+([^\s:]+):\s?(.*)$/i.exec(line)
  if (write) return { kind: 'write', path: write[1] ?? '', content: write[2] ?? '' }
  const read = /^\s*read:?\s+(\S*[./]\S*)\s*$/i.exec(line)
  return read ? { kind: 'read', path: read[1] ?? '' } : undefined
}

function continued(directive: Directive, line: string): Directive {
  switch (directive.kind) {
    case 'run':
      return { ...directive, command: `${directive.command}\n${line}` }
    case 'write':
      return { ...directive, content: `${directive.content}\n${line}` }
    case 'read':
      return directive
  }
}
