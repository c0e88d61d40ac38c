import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

const src = (file: string): string => fileURLToPath(new URL(`src/${file}.ts`, import.meta.url))

export default defineConfig({
  // Examples name the package as its users do.
  resolve: {
    alias: [
      { find: /^pawl$/, replacement: src('index') },
      { find: /^pawl\/adapters\/ai-sdk$/, replacement: src('adapters-ai-sdk') },
      { find: /^pawl\/(\w+)$/, replacement: src('$1') },
    ],
  },
  test: {
    include: ['tests/**/*.test.ts', 'examples/**/*.test.ts'],
    globalSetup: 'tests/kit/build.ts',
    setupFiles: 'tests/kit/seeded.ts',
    environment: 'node',
    pool: 'forks',
    maxWorkers: 2,
    // Nothing sleeps for luck; the time is for child processes on a loaded machine.
    testTimeout: 20_000,
    hookTimeout: 20_000,
  },
})
