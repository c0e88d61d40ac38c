/**
 * The tests that mutants of src/machines and src/log are held to: those of the two folders that run in milliseconds.
 * A mutant of the chart is run against all of them until one fails.
 */
import { defineConfig } from 'vitest/config'
import base from './vitest.config.ts'

/** `npm run mutate -- --tests=tests/machines` asks the tests of one folder only. */
const folders = process.env.PAWL_MUTATE_TESTS?.split(',') ?? ['tests/machines', 'tests/log']

export default defineConfig({
  ...(base.resolve === undefined ? {} : { resolve: base.resolve }),
  test: {
    include: folders.map((folder) => `${folder}/**/*.test.ts`),
    // A thousand schedules and thousands of damaged logs find much, but late; the SQLite store runs in a worker, from
    // dist, which holds no mutant.
    exclude: [
      'tests/machines/simulator.test.ts',
      'tests/log/invariants/damage.test.ts',
      'tests/log/stores/sqlite*.test.ts',
      'tests/log/stores/sqlite/**',
    ],
    setupFiles: 'tests/kit/seeded.ts',
    environment: 'node',
    // A worker is started for every mutant, so that nothing outlives one.
    isolate: false,
  },
})
