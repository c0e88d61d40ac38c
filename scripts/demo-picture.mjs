/**
 * Runs the demo on a terminal of 100 columns and draws its screen: `npm run demo:picture` writes docs/demo.svg. Needs
 * `script` of util-linux for the terminal. Process ids and times are those of that run, so nothing compares it.
 */
import { execFileSync } from 'node:child_process'
import { generate } from './generated.mjs'

/** Select graphic rendition, ECMA-48 8.3.117. */
const SGR = new RegExp(`(${String.fromCharCode(0x1b)}\\[[\\d;]*m)`)
const COMMAND = 'node dist/cli.js demo'
const CHAR = 7.9
const LINE = 19
const PAD = 20
const BAR = 34

const captured = execFileSync('script', ['-qec', `stty cols 100 rows 60; ${COMMAND}`, '/dev/null'], {
  encoding: 'utf8',
  env: { ...process.env, TERM: 'xterm-256color', NO_COLOR: '' },
})
const lines = [
  `\x1b[2m$\x1b[22m npm start`,
  '',
  ...captured.replaceAll('\r', '').replaceAll(process.cwd(), '~/pawl').trimEnd().split('\n'),
]

/** A piece of text and how it looks. @typedef {{ text: string, look: ReadonlySet<string> }} Span */

/** What a code of SGR turns on; those that turn off what another turned on are told by it. @type {Record<string, string>} */
const LOOKS = { 1: 'bold', 2: 'dim', 31: 'red', 32: 'green', 33: 'yellow', 34: 'blue', 35: 'magenta', 36: 'cyan' }
const COLOURS = ['red', 'green', 'yellow', 'blue', 'magenta', 'cyan']

/** @param {string} line @returns {Span[]} */
function spansOf(line) {
  const look = new Set(/** @type {string[]} */ ([]))
  return line.split(SGR).flatMap((piece) => {
    if (!piece.startsWith('\x1b[')) return piece === '' ? [] : [{ text: piece, look: new Set(look) }]
    for (const code of piece.slice(2, -1).split(';')) {
      if (code === '' || code === '0') look.clear()
      if (code === '22') for (const off of ['bold', 'dim']) look.delete(off)
      if (code === '39') for (const off of COLOURS) look.delete(off)
      const on = LOOKS[code]
      if (on !== undefined) look.add(on)
    }
    return []
  })
}

/** @param {string} line @param {number} row */
function drawLine(line, row) {
  const spans = spansOf(line)
  const drawn = spans.map(({ text, look }) => {
    const kind = look.size > 0 ? ` class="${[...look].join(' ')}"` : ''
    return `<tspan${kind}>${text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</tspan>`
  })
  if (drawn.length === 0) return []
  // Told how long it is, a line keeps its columns in whatever monospace font there is.
  const length = Math.round(spans.reduce((sum, { text }) => sum + [...text].length, 0) * CHAR)
  const y = BAR + PAD + row * LINE + 4
  return [
    `<text x="${PAD}" y="${y}" textLength="${length}" lengthAdjust="spacingAndGlyphs" xml:space="preserve">${drawn.join('')}</text>`,
  ]
}

const columns = Math.max(...lines.map((line) => spansOf(line).reduce((sum, { text }) => sum + [...text].length, 0)))
const width = Math.round(columns * CHAR) + 2 * PAD
const height = BAR + 2 * PAD + (lines.length - 1) * LINE + 8
const picture = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title">
<title id="title">The screen of npm start</title>
<style>
text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono","DejaVu Sans Mono",monospace;font-size:13px;fill:#e6edf3;white-space:pre}
.bold{font-weight:700}.dim{fill:#8b949e}.red{fill:#ff7b72}.green{fill:#7ee787}.yellow{fill:#e3b341}.blue{fill:#79c0ff}.magenta{fill:#d2a8ff}.cyan{fill:#76e3ea}
</style>
<rect width="${width}" height="${height}" rx="10" fill="#0d1117" stroke="#30363d"/>
<circle cx="20" cy="18" r="5.5" fill="#ff5f57"/><circle cx="38" cy="18" r="5.5" fill="#febc2e"/><circle cx="56" cy="18" r="5.5" fill="#28c840"/>
${lines.flatMap(drawLine).join('\n')}
</svg>
`
generate({ 'docs/demo.svg': picture }, 'npm run demo:picture')
