/** The tools of the lives. */
import { tool } from '../../dist/index.js'
import { hanging, moment } from './stage.mjs'

/** @typedef {Partial<import('../../dist/index.js').ToolDefinition<{}>>} More */

/** A tool that does its work at once. @param {string} name @param {More} [more] */
export const quick = (name, more = {}) =>
  tool({
    name,
    description: `Does ${name}.`,
    parameters: { type: 'object' },
    mode: 'parallel',
    execute: () => `${name} is done`,
    ...more,
  })

/** A tool whose body begins and never ends. @param {string} name @param {More} [more] */
export function endless(name, more = {}) {
  const begun = moment()
  return { tool: quick(name, { execute: hanging(begun), ...more }), begun: begun.reached }
}

/** A probe that is asked in no life, but only of its log. */
export const probe = async () => /** @type {const} */ ({ kind: 'unknown' })
