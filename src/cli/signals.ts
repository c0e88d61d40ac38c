/**
 * What signals mean to a command that runs an agent: Ctrl-C cancels the turn, a second one leaves at once; SIGTERM and
 * SIGHUP suspend. While the agent is being opened they are kept for it: it may already carry a turn on.
 */

export interface SignalHandlers {
  cancel(): void
  suspend(): void
}

export interface Signals {
  /** Gives the signals to `handlers` from now on, and a suspension that was asked for before. */
  handle(handlers: SignalHandlers): void
  /** Leaves signals to the system again. */
  dispose(): void
}

/** Catches SIGTERM and SIGHUP at once, SIGINT once there is something to cancel. */
export function catchSignals(): Signals {
  let handlers: SignalHandlers | undefined
  let suspended = false
  let interrupts = 0
  const onInterrupt = (): void => {
    interrupts += 1
    if (interrupts > 1) process.exit(130)
    handlers?.cancel()
  }
  const onSuspend = (): void => {
    suspended = true
    handlers?.suspend()
  }
  process.on('SIGTERM', onSuspend)
  process.on('SIGHUP', onSuspend)
  return {
    handle(given) {
      handlers = given
      process.on('SIGINT', onInterrupt)
      if (suspended) given.suspend()
    },
    dispose() {
      process.off('SIGINT', onInterrupt)
      process.off('SIGTERM', onSuspend)
      process.off('SIGHUP', onSuspend)
    },
  }
}
