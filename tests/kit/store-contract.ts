/**
 * What every store must hold, whatever it keeps logs in. A store that cannot do a thing says why, and has the tests
 * about it skipped by name.
 */
import { describe } from 'vitest'
import { append } from './store-contract/append.ts'
import { checkpoints, reopenedCheckpoints } from './store-contract/checkpoints.ts'
import { closing } from './store-contract/closing.ts'
import { faults } from './store-contract/faults.ts'
import type { OpenStore } from './store-contract/fixtures.ts'
import { mailbox } from './store-contract/mailbox.ts'
import { ownership } from './store-contract/ownership.ts'
import { pages } from './store-contract/pages.ts'
import { reading } from './store-contract/reading.ts'
import { rests, sharedRests } from './store-contract/rests.ts'
import { reopening, sharing } from './store-contract/sharing.ts'
import { summary } from './store-contract/summary.ts'

/** What a store lacks, each with the reason that stands in the titles of the skipped tests. */
export interface Without {
  /** It opens no second instance on the same data. */
  readonly second?: string
  /** It cannot be closed and opened again on the same data. */
  readonly reopen?: string
  /** It tells no log in pages. */
  readonly pages?: string
  /** It keeps no checkpoints. */
  readonly checkpoints?: string
  /** It lets no owner rest. */
  readonly rests?: string
}

/**
 * Declares the suite under `name`. `open` gives an empty store, once a test, with `second` and `reopen` unless `without`
 * says why not; its `dispose` runs after the test and closes all instances it gave out, those closed already included.
 */
export function storeContract(name: string, open: OpenStore, without: Without = {}): void {
  describe(`${name} keeps the store contract`, () => {
    describe('one owner', () => ownership(open))
    describe('append', () => append(open))
    describe('reading', () => reading(open))
    describe('pages', () => pages(open, without.pages))
    describe('checkpoints', () => {
      checkpoints(open, without.checkpoints)
      reopenedCheckpoints(open, without.checkpoints ?? without.reopen)
    })
    describe('rests', () => {
      rests(open, without.rests)
      sharedRests(open, without.rests ?? without.second)
    })
    describe('mailbox', () => mailbox(open))
    describe('summary', () => summary(open))
    describe('closing', () => closing(open))
    describe('two instances', () => sharing(open, without.second))
    describe('opened again', () => reopening(open, without.reopen))
    describe('faults', () => faults(open))
  })
}
