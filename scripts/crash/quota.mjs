/** The signals that are still to be sent, shared by all lanes: taken before a life, given back if it ended by itself. */

/** @typedef {'SIGKILL' | 'SIGTERM'} Signal */
/**
 * @typedef {object} Quota
 * @property {() => number} left 0 once it is closed
 * @property {(draw: number) => Signal} take one of those left, in their proportion by a number in [0, 1)
 * @property {(signal: Signal) => void} giveBack
 * @property {() => void} close no more are sent
 */

/** @param {number} kills @param {number} terms @returns {Quota} */
export function quota(kills, terms) {
  const left = { SIGKILL: kills, SIGTERM: terms }
  let closed = false
  return {
    left: () => (closed ? 0 : left.SIGKILL + left.SIGTERM),
    take(draw) {
      const wanted = draw * (kills + terms) < terms ? 'SIGTERM' : 'SIGKILL'
      const signal = left[wanted] > 0 ? wanted : wanted === 'SIGTERM' ? 'SIGKILL' : 'SIGTERM'
      left[signal] -= 1
      return signal
    },
    giveBack(signal) {
      left[signal] += 1
    },
    close() {
      closed = true
    },
  }
}
