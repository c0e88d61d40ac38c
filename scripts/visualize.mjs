/** Draws the agent's chart: `npm run visualize`, or with `--check` says whether the pictures are current. */
import { generate } from './generated.mjs'
import { readChart } from './visualize/chart.mjs'
import { mermaid } from './visualize/mermaid.mjs'
import { svg } from './visualize/svg.mjs'

const chart = readChart()
generate({ 'visualizations/agent.mmd': mermaid(chart), 'visualizations/agent.svg': svg(chart) }, 'npm run visualize')
