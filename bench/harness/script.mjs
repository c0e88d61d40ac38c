/** What the fake model of every contender says: the same words to the same request, made before anything is timed. */

/**
 * @typedef {object} Answer
 * @property {readonly string[]} deltas Its text, piece by piece.
 * @property {{ readonly n: number }} [call] The arguments of a call of the tool `look`, differing from one to the next.
 */

/** What the n-th request of a conversation is answered with, from 0. @typedef {(n: number) => Answer} Answers */

/**
 * @typedef {object} Script
 * @property {number} deltas Of each answer.
 * @property {number} [steps] So many answers ask for the tool before one that does not; none by default.
 */

/** What each contender's tool gives back. */
export const RESULT = 'nothing unusual'

/** Different answers until they come again. */
const VARIETY = 64

/** None may begin a secret: Pawl holds such a word until it knows, and then says two pieces as one. */
const WORDS =
  `the log remembers what one turn did and every step leaves its trace before an effect happens so nobody has to
guess which call was made when power failed while readers follow events in order from any place history never changes under
its feet small pieces of text arrive one after another like rain on the roof`.split(/\s+/)

/** @param {Script} script @returns {Answers} */
export function answersOf({ deltas, steps = 0 }) {
  const texts = Array.from({ length: Math.min(VARIETY, Math.max(steps + 1, 8)) }, (_, i) => textOf(i, deltas))
  return (n) => {
    const said = { deltas: texts[n % texts.length] ?? [] }
    return n % (steps + 1) < steps ? { ...said, call: { n } } : said
  }
}

/** No two alike and none compressible beyond what text is: the order of the words is drawn. @param {number} seed @param {number} length */
function textOf(seed, length) {
  let state = (seed + 1) * 2_654_435_761
  return Array.from({ length }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return ` ${WORDS[(state >>> 8) % WORDS.length]}`
  })
}
