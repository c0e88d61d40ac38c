/** What signals mean to a command that runs an agent: Ctrl-C cancels the turn, a second one leaves at once; SIGTERM and SIGHUP suspend. */

export interface SignalHandlers {
  cancel(): void
  suspend(): void
}

/** Installs the handlers until `dispose`. */
export function onSignals(handlers: SignalHandlers): { dispose(): void } {
  let interrupts = 0
  const onInterrupt = (): void => {
    interrupts += 1
    if (interrupts > 1) process.exit(130)
    handlers.cancel()
  }
  const onSuspend = (): void => handlers.suspend()
  process.on('SIGINT', onInterrupt)
  process.on('SIGTERM', onSuspend)
  process.on('SIGHUP', onSuspend)
  return {
    dispose() {
      process.off('SIGINT', onInterrupt)
      process.off('SIGTERM', onSuspend)
      process.off('SIGHUP', onSuspend)
    },
  }
}
