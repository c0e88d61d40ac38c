/** Where a worker's code is. Under a test runner this file is the source, and a worker runs only what was built. */

/** The URL to start the worker `name` of this folder from. */
export function workerEntry(name: 'writer' | 'copier'): URL {
  const here = import.meta.url
  return here.endsWith('.ts')
    ? new URL(`../../../../dist/log/stores/sqlite/${name}.js`, here)
    : new URL(`./${name}.js`, here)
}
