/**
 * An abort controller that is made when somebody asks for its signal. A signal costs a kilobyte, and most of those of a
 * thousand idle agents are never listened to.
 */
export class LazyAbort {
  #controller: AbortController | undefined
  #aborted: { readonly reason: unknown } | undefined

  get aborted(): boolean {
    return this.#aborted !== undefined
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#aborted !== undefined) this.#controller.abort(this.#aborted.reason)
    }
    return this.#controller.signal
  }

  /** The first reason stays. */
  abort(reason: unknown): void {
    if (this.#aborted !== undefined) return
    this.#aborted = { reason }
    this.#controller?.abort(reason)
  }
}
