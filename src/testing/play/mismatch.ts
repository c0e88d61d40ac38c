/** How a real agent differs from its path, in words that say where and in what. */
import type { PathInput } from '../path-input.ts'

export interface Difference {
  readonly label: string
  /** From 0: which input of the path it follows. */
  readonly step: number
  /** All that happened, the input in question last. */
  readonly inputs: readonly PathInput[]
  /** What differs, such as `the durable events`. */
  readonly what: string
  readonly expected: readonly string[]
  readonly actual: readonly string[]
  /** What was thrown where nothing should have been. */
  readonly cause?: unknown
}

/** The agent did not do what its path says. */
export class PathMismatch extends Error {
  override readonly name = 'PathMismatch'
  readonly label: string
  readonly step: number
  readonly input: PathInput | undefined
  readonly what: string
  readonly expected: readonly string[]
  readonly actual: readonly string[]

  constructor(difference: Difference) {
    super(describe(difference), 'cause' in difference ? { cause: difference.cause } : {})
    this.label = difference.label
    this.step = difference.step
    this.input = difference.inputs.at(-1)
    this.what = difference.what
    this.expected = difference.expected
    this.actual = difference.actual
  }
}

const describe = ({ label, inputs, what, expected, actual }: Difference): string =>
  [
    label,
    ...inputs.map((input, index) => `${index === inputs.length - 1 ? '>' : ' '} ${JSON.stringify(input)}`),
    `${what} differ (- expected, + actual):`,
    ...differenceOf(expected, actual),
  ].join('\n')

/** Lines both have at the beginning and at the end stand once; what is between them stands as it is in each. */
function differenceOf(expected: readonly string[], actual: readonly string[]): readonly string[] {
  const shorter = Math.min(expected.length, actual.length)
  let head = 0
  while (head < shorter && expected[head] === actual[head]) head += 1
  let tail = 0
  while (tail < shorter - head && expected.at(-1 - tail) === actual.at(-1 - tail)) tail += 1
  return [
    ...expected.slice(0, head).map((line) => `    ${line}`),
    ...expected.slice(head, expected.length - tail).map((line) => `  - ${line}`),
    ...actual.slice(head, actual.length - tail).map((line) => `  + ${line}`),
    ...expected.slice(expected.length - tail).map((line) => `    ${line}`),
  ]
}
