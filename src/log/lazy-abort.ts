/**
 * An abort controller that is made when somebody asks for its signal. A signal costs a kilobyte, and most of those of a
 * thousand idle agents are never listened to.
 */
export class LazyAbort {
  #controller: AbortController | undefined
  #aborted: { readonly reason: unknown } | undefined
  #listeners: Set<() => void> | undefined

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

  /** Why; undefined before. */
  get reason(): unknown {
    return this.#aborted?.reason
  }

  /** The first reason stays. */
  abort(reason: unknown): void {
    if (this.#aborted !== undefined) return
    this.#aborted = { reason }
    this.#controller?.abort(reason)
    // One that another takes back meanwhile is not called any more.
    for (const listener of this.#listeners ?? []) listener()
    this.#listeners = undefined
  }

  /** Calls back once, at the abort, after those who listen to the signal; at once if that was. The result takes it back. */
  listen(listener: () => void): () => void {
    if (this.#aborted !== undefined) {
      listener()
      return () => {}
    }
    this.#listeners ??= new Set()
    this.#listeners.add(listener)
    return () => this.#forget(listener)
  }

  #forget(listener: () => void): void {
    this.#listeners?.delete(listener)
    // Not while they are called: what one adds then is called as well.
    if (this.#listeners?.size === 0 && this.#aborted === undefined) this.#listeners = undefined
  }
}
