/**
 * The chart as a picture. States are laid out from the top down, a state's own states inside it first; arrows that go
 * back to an earlier state are drawn thinner, so that the way of a turn stands out. All numbers are whole, so that the
 * file is the same wherever it is drawn.
 */
import dagre from '@dagrejs/dagre'
import { EVERYWHERE, labelOf } from './chart.mjs'

/** @typedef {import('./chart.mjs').Chart} Chart */
/** @typedef {import('./chart.mjs').State} State */
/** @typedef {import('./chart.mjs').Arrow} Arrow */
/** @typedef {{ x: number, y: number }} Point */
/** @typedef {{ x: number, y: number, width: number, height: number, state: State, inner?: Drawing }} Box x and y: its middle */
/** @typedef {{ points: readonly Point[], label: Point, lines: readonly string[], back: boolean }} Line */
/** @typedef {{ width: number, height: number, boxes: readonly Box[], lines: readonly Line[] }} Drawing */

const MARGIN = 24
const PAD = 14
/** Of the monospace fonts that a reader may have, the widest: what fits it fits the others. */
const charWidth = (/** @type {number} */ size) => size * 0.61
const TITLE = 15
const SMALL = 11
const LINE = 15

/** @param {Chart} chart */
export function svg(chart) {
  const drawing = layOut(chart, undefined)
  const notes = footnotes()
  const width = drawing.width + 2 * MARGIN
  const height = drawing.height + 2 * MARGIN + notes.length * LINE + PAD
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title">`,
    '<title id="title">The chart of an agent: states, and the durable events that move it from one to the next</title>',
    `<style>${STYLE}</style>`,
    '<defs>',
    ...['way', 'back'].map(
      (kind) =>
        `<marker id="${kind}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse" orient="auto"><path class="${kind}-head" d="M0 0 L8 4 L0 8 z"/></marker>`,
    ),
    '</defs>',
    `<rect class="paper" width="${width}" height="${height}" rx="8"/>`,
    `<g transform="translate(${MARGIN} ${MARGIN})">`,
    ...draw(drawing, 'paper'),
    '</g>',
    ...notes.map((note, i) => text(note, { x: MARGIN, y: drawing.height + 2 * MARGIN + i * LINE + 6 }, 'note')),
    '</svg>',
  ].join('\n')}\n`
}

const footnotes = () => [
  'Arrows are durable events, [guards] in brackets; thin ones go back. Verdicts of actors (in italics) only record.',
  `Every state that waits also takes ${EVERYWHERE.join(' and ')}; commands only record, in any state.`,
]

/**
 * @param {Chart} chart
 * @param {string | undefined} parent the state whose inside is laid out; undefined: all of it
 * @returns {Drawing}
 */
function layOut(chart, parent) {
  const states = chart.states.filter((state) => state.parent === parent)
  const graph = new dagre.graphlib.Graph({ multigraph: true })
  graph.setGraph({
    rankdir: parent === undefined ? 'TB' : 'LR',
    nodesep: 56,
    ranksep: parent === undefined ? 34 : 30,
    edgesep: 24,
  })
  const boxes = states.map((state) => boxOf(chart, state))
  for (const box of boxes) graph.setNode(box.state.id, box)
  const bundles = bundled(chart.arrows, states)
  for (const { from, to, lines, back } of bundles) {
    // Backwards for the layout, so that only what goes on decides who stands above whom.
    const [v, w] = back ? [to, from] : [from, to]
    graph.setEdge(v, w, { ...sizeOf(lines), labelpos: 'c', weight: back ? 1 : 8, lines, back }, back ? 'back' : 'way')
  }
  dagre.layout(graph)
  return {
    width: Math.round(graph.graph().width ?? 0),
    height: Math.round(graph.graph().height ?? 0),
    boxes: boxes.map((box) => ({ ...box, ...rounded(graph.node(box.state.id)) })),
    lines: graph.edges().map((/** @type {import('@dagrejs/dagre').Edge} */ edge) => {
      const { points, x, y, lines, back } = graph.edge(edge)
      const way = points.map(rounded)
      return { points: back ? way.toReversed() : way, label: rounded({ x, y }), lines, back }
    }),
  }
}

/** @param {Point} point */
const rounded = ({ x, y }) => ({ x: Math.round(x), y: Math.round(y) })

/** @type {(chart: Chart, state: State) => Box} */
function boxOf(chart, state) {
  const inner = chart.states.some(({ parent }) => parent === state.id) ? layOut(chart, state.id) : undefined
  const wanted = Math.max(
    state.id.length * charWidth(TITLE),
    ...detailsOf(state).map(({ line }) => line.length * charWidth(SMALL)),
  )
  const height = 2 * PAD + TITLE + detailsOf(state).length * LINE + (inner ? inner.height + PAD : 0)
  const width = Math.max(wanted, inner?.width ?? 0, 110) + 2 * PAD
  return { x: 0, y: 0, width: even(width), height: even(height), state, ...(inner && { inner }) }
}

const even = (/** @type {number} */ n) => 2 * Math.ceil(n / 2)

/** @param {State} state */
const detailsOf = ({ actors, verdicts, takes }) => [
  ...actors.map((actor) => ({ line: `runs ${actor}`, kind: 'actor' })),
  ...inRows(verdicts).map((line) => ({ line, kind: 'verdict' })),
  ...inRows(takes).map((line) => ({ line, kind: 'takes' })),
]

/** @param {readonly string[]} words */
function inRows(words) {
  /** @type {string[]} */
  const rows = []
  for (const word of words) {
    const last = rows.at(-1)
    if (last !== undefined && `${last}, ${word}`.length <= 34) rows[rows.length - 1] = `${last}, ${word}`
    else rows.push(word)
  }
  return rows
}

/**
 * One line for all arrows from one state to another; arrows from a state to itself are told in words below the picture.
 * @param {readonly Arrow[]} arrows
 * @param {readonly State[]} states
 */
function bundled(arrows, states) {
  const ids = states.map(({ id }) => id)
  const shown = arrows.filter(({ from, to }) => from !== to && ids.includes(from) && ids.includes(to))
  /** @type {Map<string, { from: string, to: string, lines: string[], back: boolean }>} */
  const found = new Map()
  for (const arrow of shown) {
    const { from, to } = arrow
    const key = `${from} ${to}`
    const bundle = found.get(key) ?? { from, to, lines: [], back: ids.indexOf(to) < ids.indexOf(from) }
    bundle.lines.push(...labelLines(arrow))
    found.set(key, bundle)
  }
  return [...found.values()]
}

/** A guard goes on a line of its own. @param {Arrow} arrow */
const labelLines = (arrow) => labelOf(arrow).split(/ (?=\[)/)

/** @param {readonly string[]} lines */
const sizeOf = (lines) => ({
  width: even(Math.max(...lines.map((line) => line.length)) * charWidth(SMALL) + 10),
  height: lines.length * LINE + 4,
})

/** @param {Drawing} drawing @param {'paper' | 'ground'} on what it lies on @returns {string[]} */
function draw({ boxes, lines }, on) {
  const arrows = lines.map(({ points, back }) => {
    const kind = back ? 'back' : 'way'
    return `<path class="${kind}" d="${curve(points)}" marker-end="url(#${kind})"/>`
  })
  const labels = lines.flatMap(({ label, lines: words }) => {
    const { width, height } = sizeOf(words)
    const top = label.y - Math.floor(height / 2)
    return [
      `<rect class="${on}" x="${label.x - width / 2}" y="${top}" width="${width}" height="${height}"/>`,
      ...words.map((word, i) =>
        text(word, { x: label.x, y: top + 13 + i * LINE }, word.startsWith('[') ? 'guard' : 'event', 'middle'),
      ),
    ]
  })
  return [...arrows, ...boxes.flatMap(drawBox), ...labels]
}

/** @param {Box} box @returns {string[]} */
function drawBox({ x, y, width, height, state, inner }) {
  const [left, top] = [x - width / 2, y - height / 2]
  const base = top + PAD + TITLE - 3
  const details = detailsOf(state).map(({ line, kind }, i) =>
    text(line, { x, y: base + (i + 1) * LINE + 2 }, kind, 'middle'),
  )
  const inside = inner
    ? [
        `<g transform="translate(${left + Math.round((width - inner.width) / 2)} ${top + height - inner.height - PAD})">`,
        ...draw(inner, 'ground'),
        '</g>',
      ]
    : []
  return [
    `<rect class="state${state.parent === undefined ? '' : ' inside'}" x="${left}" y="${top}" width="${width}" height="${height}" rx="9"/>`,
    ...(state.initial ? [`<circle class="dot" cx="${left + 13}" cy="${top + 13}" r="4"/>`] : []),
    text(state.id, { x, y: base }, 'title', 'middle'),
    ...details,
    ...inside,
  ]
}

/** @param {string} words @param {Point} at @param {string} kind @param {'start' | 'middle'} [anchor] */
const text = (words, { x, y }, kind, anchor = 'start') =>
  `<text class="${kind}" x="${x}" y="${y}"${anchor === 'middle' ? ' text-anchor="middle"' : ''}>${escaped(words)}</text>`

const escaped = (/** @type {string} */ words) => words.replaceAll('&', '&amp;').replaceAll('<', '&lt;')

/** Through the middle of each piece, rounded at the corners; straight at both ends. @param {readonly Point[]} points */
function curve(points) {
  const [first, ...rest] = points
  const last = rest.at(-1)
  if (first === undefined || last === undefined) return ''
  const bends = rest.slice(0, -1).map((point, i) => {
    const next = rest[i + 1] ?? last
    const end =
      i === rest.length - 2 ? next : { x: Math.round((point.x + next.x) / 2), y: Math.round((point.y + next.y) / 2) }
    return `Q${point.x} ${point.y} ${end.x} ${end.y}`
  })
  return [`M${first.x} ${first.y}`, ...(bends.length > 0 ? bends : [`L${last.x} ${last.y}`])].join(' ')
}

const STYLE = `
text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono","DejaVu Sans Mono",monospace;font-size:${SMALL}px;fill:#1f2328}
.title{font-size:${TITLE}px;font-weight:600}
.actor,.verdict{fill:#57606a}.verdict{font-style:italic}
.takes,.event{fill:#0b5cad}.guard,.note{fill:#57606a}
.ground,.state{fill:#f3f6fa}.paper,.state.inside{fill:#ffffff}.state{stroke:#8c959f;stroke-width:1.2}
.dot{fill:#1f2328}
.way,.back{fill:none}.way{stroke:#0b5cad;stroke-width:2}.back{stroke:#8c959f;stroke-width:1.2}
.way-head{fill:#0b5cad}.back-head{fill:#8c959f}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.actor,.verdict,.guard,.note{fill:#9da7b1}.takes,.event{fill:#79b8ff}
.ground,.state{fill:#171d26}.paper,.state.inside{fill:#0d1117}.state{stroke:#586069}.dot{fill:#e6edf3}
.way{stroke:#58a6ff}.back{stroke:#6e7681}.way-head{fill:#58a6ff}.back-head{fill:#6e7681}
}
`
