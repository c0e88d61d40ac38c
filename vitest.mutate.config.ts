/**
 * The tests that mutants of src/machines and src/log are held to: fast, in one thread, without worker or process.
 * A mutant of the chart is run against all of them until one fails, so the sharpest come first.
 */
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import base from './vitest.config.ts'

/** Folders in the order in which they are asked. */
const ORDER = ['tests/machines/', 'tests/log/', 'tests/agent/', 'tests/cases/', 'tests/failures/']

/** Start processes or workers, count resources, or read the source that a mutant is written into. */
const LEFT_OUT = [
  'tests/log/stores/sqlite*/**',
  'tests/log/stores/sqlite*.test.ts',
  'tests/agent/{footprint,processes,store-failure,version}.test.ts',
  'tests/cases/{http,sse,translate,persist,persist-store}.test.ts',
  'tests/failures/{log,network,running}.test.ts',
]

class Sharpest extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return [...files].sort((a, b) => rank(a.moduleId) - rank(b.moduleId) || (a.moduleId < b.moduleId ? -1 : 1))
  }
}

function rank(file: string): number {
  const folder = ORDER.findIndex((each) => file.includes(each))
  // A thousand schedules find much, but late.
  return file.endsWith('simulator.test.ts') ? ORDER.length : folder
}

export default defineConfig({
  ...(base.resolve === undefined ? {} : { resolve: base.resolve }),
  test: {
    include: ORDER.map((folder) => `${folder}**/*.test.ts`),
    exclude: LEFT_OUT,
    environment: 'node',
    // A worker is started for every mutant, so that nothing outlives one.
    isolate: false,
    sequence: { sequencer: Sharpest },
    testTimeout: 20_000,
  },
})
