/**
 * The ratios of a run, drawn: how many times what Pawl takes each of the others takes, on a logarithmic scale. Everything
 * is in the file, and its colours follow the reader's scheme.
 */

/**
 * @typedef {object} Group
 * @property {string} title
 * @property {string} own What Pawl takes, with its unit.
 * @property {readonly Bar[]} bars
 */

/** @typedef {{ name: string, ratio: number, kind: 'unit' | 'own' | 'floor' | 'other' }} Bar unit: what the others are measured by. */

/** Which table, whose row is Pawl's, what a figure is called, and whether more is better. @type {readonly [table: string, title: string, own: string, unit: string, more: boolean][]} */
const SHOWN = [
  ['steps-memory', 'One step of 20 deltas and a tool call, in memory', 'Pawl', 'ms', false],
  ['steps-disk', 'The same, on disk before each effect', 'Pawl', 'ms', false],
  ['chat', 'Turn 200 of a conversation', 'Pawl', 'ms', false],
  ['answer', 'One answer of 20,000 deltas', 'Pawl', 'deltas/s', true],
  ['sse-tokens', '20,000 events of a stream, from a socket', 'pawl', 'events/s', true],
]

/** Names of what does no more than it must. */
const FLOORS = ['a while loop', 'two commits of a worker', 'eventsource-parser + JSON.parse']

const WIDTH = 780
const LABEL = 236
/** For the figure beside the longest bar. */
const VALUE = 56
const RIGHT = 64
const ROW = 20
const HEAD = 34
const TOP = 64
const FOOT = 34
const DECADES = /** @type {const} */ ([0.001, 1_000])

/** @typedef {Readonly<Record<'page' | 'ink' | 'soft' | 'line' | 'own' | 'floor' | 'other', string>>} Colours */
/** @type {Colours} */
const LIGHT = {
  page: '#fff',
  ink: '#1f2328',
  soft: '#59636e',
  line: '#d1d9e0',
  own: '#1a7f37',
  floor: '#9aa4ae',
  other: '#0969da',
}
/** @type {Colours} */
const DARK = {
  page: '#0d1117',
  ink: '#e6edf3',
  soft: '#9198a1',
  line: '#30363d',
  own: '#3fb950',
  floor: '#6e7681',
  other: '#4493f8',
}

/** No custom properties: not every program that draws SVG knows them. @param {Colours} of */
const rulesOf = ({ page, ink, soft, line, own, floor, other }) =>
  `text{fill:${ink}}.page{fill:${page};stroke:${line}}text.soft{fill:${soft}}.grid{stroke:${line}}.one{stroke:${own}}` +
  `.own,text.own{fill:${own}}.floor{fill:${floor}}.other{fill:${other}}`

/** @param {import('./results.mjs').Results} results */
export function pictureOf({ machine, results }) {
  const tables = results.flatMap(({ tables: of }) => of)
  const groups = SHOWN.flatMap((shown) => groupOf(tables, shown))
  const ratios = groups.flatMap(({ bars }) => bars.map(({ ratio }) => ratio))
  const low = 10 ** Math.floor(Math.log10(Math.max(DECADES[0], Math.min(...ratios))))
  const high = 10 ** Math.ceil(Math.log10(Math.min(DECADES[1], Math.max(...ratios))))
  const x = (/** @type {number} */ ratio) =>
    LABEL +
    VALUE +
    (WIDTH - LABEL - VALUE - RIGHT) * (Math.log(Math.min(high, Math.max(low, ratio)) / low) / Math.log(high / low))
  let y = TOP
  const drawn = groups.map((group) => {
    const at = y
    y += HEAD + group.bars.length * ROW
    return drawGroup(group, at, x)
  })
  const height = y + FOOT
  const subtitle = `times what Pawl takes, in one run: to the left faster, to the right slower · Node ${machine.node}, ${machine.date}`
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="title">
<title id="title">How long others take, as a multiple of what Pawl takes</title>
<style>
text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Liberation Sans","DejaVu Sans",sans-serif;font-size:12px}
.title{font-size:16px;font-weight:600}.head{font-size:13px;font-weight:600}text.own{font-weight:600}
${rulesOf(LIGHT)}
@media (prefers-color-scheme:dark){
${rulesOf(DARK)}
}
</style>
<rect class="page" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="10"/>
<text class="title" x="20" y="28">How long others take</text>
<text class="soft" x="20" y="47">${escaped(subtitle)}</text>
${decadesOf(low, high)
  .map((ratio) => drawDecade(ratio, x(ratio), height))
  .join('\n')}
${drawn.join('\n')}
</svg>
`
}

/**
 * @param {readonly import('../harness/table.mjs').Table[]} tables
 * @param {typeof SHOWN[number]} shown
 * @returns {Group[]}
 */
function groupOf(tables, [id, title, own, unit, more]) {
  const rows = tables.find((table) => table.id === id)?.rows ?? []
  const median = Number(rows.find(({ name }) => name === own)?.median)
  if (Number.isNaN(median)) return []
  const bars = rows.map((row) => {
    const name = String(row.name)
    const ratio = more ? median / Number(row.median) : Number(row.median) / median
    return { name, ratio, kind: name === own ? /** @type {const} */ ('unit') : kindOf(name) }
  })
  return [{ title, own: `${rounded(median)} ${unit}`, bars: bars.sort((a, b) => a.ratio - b.ratio) }]
}

/** @param {string} name @returns {Bar['kind']} */
function kindOf(name) {
  if (FLOORS.includes(name)) return 'floor'
  return name.toLowerCase().startsWith('pawl') ? 'own' : 'other'
}

/** @param {Group} group @param {number} top @param {(ratio: number) => number} x */
function drawGroup({ title, own, bars }, top, x) {
  const lines = bars.map(({ name, ratio, kind }, i) => {
    const y = top + HEAD + i * ROW
    const [from, to] = [Math.min(x(1), x(ratio)), Math.max(x(1), x(ratio))]
    const label = `<text${kind === 'unit' || kind === 'own' ? ' class="own"' : ''} x="${LABEL - 12}" y="${y + 4}" text-anchor="end">${escaped(name)}</text>`
    if (kind === 'unit')
      return `${label}<circle class="own" cx="${place(x(1))}" cy="${y}" r="5"/><text class="own" x="${place(x(1) + 10)}" y="${y + 4}">${own}</text>`
    const bar = `<rect class="${kind}" x="${place(from)}" y="${y - 5}" width="${place(Math.max(1, to - from))}" height="10" rx="2"/>`
    const value = ratio < 1 ? [from - 6, 'end'] : [to + 6, 'start']
    return `${label}${bar}<text class="soft" x="${place(Number(value[0]))}" y="${y + 4}" text-anchor="${value[1]}">${rounded(ratio)} ×</text>`
  })
  return `<text class="head" x="20" y="${top + 14}">${escaped(title)}</text>\n${lines.join('\n')}`
}

/** @param {number} ratio @param {number} x @param {number} height */
const drawDecade = (ratio, x, height) =>
  `<line class="${ratio === 1 ? 'one' : 'grid'}" x1="${place(x)}" x2="${place(x)}" y1="${TOP}" y2="${height - FOOT + 4}"/>` +
  `<text class="soft" x="${place(x)}" y="${height - 12}" text-anchor="middle">${ratio === 1 ? 'Pawl' : `${ratio} ×`}</text>`

/** @param {number} low @param {number} high */
const decadesOf = (low, high) =>
  Array.from({ length: Math.round(Math.log10(high / low)) + 1 }, (_, i) => Number((low * 10 ** i).toPrecision(1)))

/** @param {number} value */
const rounded = (value) => Number(value.toPrecision(2)).toLocaleString('en-US', { maximumFractionDigits: 4 })

/** @param {number} value of a coordinate */
const place = (value) => Math.round(value * 10) / 10

/** @param {string} text */
const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')
