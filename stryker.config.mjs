/** Mutants of the chart and of the log, each held to the tests that reach it. Start it with `npm run mutate`. */
export default {
  packageManager: 'npm',
  plugins: ['@stryker-mutator/vitest-runner'],
  testRunner: 'vitest',
  vitest: { configFile: 'vitest.mutate.config.ts', related: false },
  coverageAnalysis: 'perTest',
  mutate: ['src/machines/**/*.ts', 'src/log/**/*.ts', '!src/log/stores/sqlite.ts', '!src/log/stores/sqlite/**'],
  concurrency: 2,
  // Stryker reads a tsconfig with the compiler's old API, which TypeScript 7 does not have: it is given none.
  tsconfigFile: 'none.json',
  disableTypeChecks: false,
  ignorePatterns: ['/dist', '/dist.*', '/visualizations', '/examples', '/reports'],
  reporters: ['clear-text', 'progress-append-only', 'json', 'html'],
  clearTextReporter: { logTests: false, allowColor: false, reportTests: false },
  jsonReporter: { fileName: 'reports/mutation/mutation.json' },
  htmlReporter: { fileName: 'reports/mutation/mutation.html' },
  incrementalFile: 'reports/mutation/incremental.json',
  tempDirName: 'reports/mutation/tmp',
  thresholds: { high: 95, low: 85, break: null },
  // A loaded machine is slow, and a mutant that is only slow must not count as killed.
  timeoutMS: 60_000,
  allowEmpty: false,
}
