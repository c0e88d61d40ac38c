/**
 * The agent's chart as data for a picture, read from the machine itself. A picture shows what moves: an arrow is a
 * durable event that changes the state. What only records is listed in its state (verdicts) or left out (commands,
 * errors), and so is what every state takes alike.
 */
import { agentMachine } from '../../dist/machines.js'

/**
 * @typedef {object} State
 * @property {string} id
 * @property {string} [parent] the state it lies in
 * @property {boolean} initial
 * @property {readonly string[]} actors what runs while the chart is in it
 * @property {readonly string[]} verdicts those it records on, without their prefix
 * @property {readonly string[]} takes durable events that change the context and not the state
 */
/** @typedef {{ from: string, to: string, event: string, guards: readonly string[] }} Arrow */
/** @typedef {{ states: readonly State[], arrows: readonly Arrow[] }} Chart */
/** @typedef {(typeof agentMachine)['root']} Node */

/** Taken by every state that waits, in the same way: the cancel is noted, the actor runs again. */
export const EVERYWHERE = ['turn/cancel', 'session/resumed']

/** @returns {Chart} states and arrows in the order in which the machine declares them */
export function readChart() {
  const nodes = below(agentMachine.root)
  return { states: nodes.map(stateOf), arrows: merged(nodes.flatMap(arrowsOf)) }
}

/** @type {(node: Node) => Node[]} */
const below = (node) => Object.values(node.states).flatMap((child) => [child, ...below(child)])

/** @type {(node: Node) => State} */
function stateOf(node) {
  const { parent } = node
  const alike = [...EVERYWHERE, ...agentMachine.root.ownEvents]
  const staying = transitionsOf(node).filter(({ target }) => target === undefined)
  const moving = new Set(arrowsOf(node).map(({ event }) => event))
  const events = [...new Set(staying.map(({ eventType }) => eventType))].filter((event) => !alike.includes(event))
  return {
    id: node.key,
    ...(parent && parent !== agentMachine.root && { parent: parent.key }),
    initial: parent?.config.initial === node.key,
    actors: node.invoke.map(({ src }) => String(src)),
    verdicts: events.flatMap((event) => (event.startsWith('verdict.') ? [event.slice('verdict.'.length)] : [])),
    takes: events.filter((event) => event.includes('/') && !moving.has(event)),
  }
}

/** @type {(node: Node) => Arrow[]} */
const arrowsOf = (node) =>
  transitionsOf(node).flatMap(({ target, eventType, guard }) =>
    (target ?? []).map((to) => ({
      from: node.key,
      to: to.key,
      event: eventType,
      guards: typeof guard === 'string' ? [guard] : [],
    })),
  )

/** @param {Node} node */
const transitionsOf = (node) => [...node.transitions.values()].flat()

/**
 * Arrows between the same two states on the same event are one, with each guard; none if one of them needs none.
 * @param {readonly Arrow[]} arrows
 * @returns {Arrow[]}
 */
function merged(arrows) {
  /** @type {Map<string, Arrow>} */
  const found = new Map()
  for (const arrow of arrows) {
    const key = [arrow.from, arrow.to, arrow.event].join(' ')
    const other = found.get(key)
    const free = other && (other.guards.length === 0 || arrow.guards.length === 0)
    found.set(key, other ? { ...other, guards: free ? [] : [...other.guards, ...arrow.guards] } : arrow)
  }
  return [...found.values()]
}

/** @param {Arrow} arrow */
export const labelOf = ({ event, guards }) => (guards.length === 0 ? event : `${event} [${guards.join(' or ')}]`)
