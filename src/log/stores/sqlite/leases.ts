/**
 * The sessions this store owns. Every acquire anywhere raises one counter in the file, so a single small query now and
 * then tells whether any of them can have been taken.
 */
import { Fenced, type PawlError } from '../../errors.ts'
import type { Owned, Reader } from './reader.ts'

/** How often it is looked whether another owner came. */
const WATCH_MS = 200

export interface Lease {
  readonly session: number
  readonly epoch: number
  /** The owner's id as the file has it. */
  readonly owner: string
  lose(reason: PawlError): void
  /** A command waits for its owner. */
  posted?(): void
}

export interface Leases {
  /** A lease of the same session that was there before is lost to this one. */
  add(lease: Lease): void
  remove(lease: Lease): void
  owns(session: number, epoch: number): boolean
  /** Commands were posted for that session. */
  posted(session: number): void
  loseAll(reason: (lease: Lease) => PawlError): void
}

/** Watches through `reader` while there is a lease; never keeps the process alive. */
export function createLeases(reader: () => Reader | undefined): Leases {
  const held = new Map<number, Lease>()
  let timer: NodeJS.Timeout | undefined
  /** No lease was taken by an epoch up to this one. */
  let seenEpoch = 0

  const drop = (lease: Lease): void => {
    if (held.get(lease.session) !== lease) return
    held.delete(lease.session)
    if (held.size === 0) {
      clearInterval(timer)
      timer = undefined
    }
  }
  const lose = (lease: Lease, reason: PawlError): void => {
    drop(lease)
    lease.lose(reason)
  }
  const watch = (): void => {
    try {
      const open = reader()
      const epoch = open?.lastEpoch()
      if (open === undefined || epoch === undefined || epoch <= seenEpoch) return
      for (const taken of open.ownedSince(seenEpoch)) {
        const lease = held.get(taken.session)
        if (lease !== undefined && !isStill(taken, lease)) lose(lease, new Fenced(lease.epoch))
      }
      seenEpoch = epoch
    } catch {
      // A file that cannot be read now says nothing about its owner; the next append will.
    }
  }

  return {
    add(lease) {
      const before = held.get(lease.session)
      held.set(lease.session, lease)
      before?.lose(new Fenced(before.epoch))
      // It may have been taken, and that been noticed, on the way here.
      seenEpoch = Math.min(seenEpoch, lease.epoch)
      timer ??= setInterval(watch, WATCH_MS).unref()
    },
    remove: drop,
    owns: (session, epoch) => held.get(session)?.epoch === epoch,
    posted: (session) => held.get(session)?.posted?.(),
    loseAll(reason) {
      for (const lease of [...held.values()]) lose(lease, reason(lease))
    },
  }
}

const isStill = (now: Owned, { epoch, owner }: Lease): boolean => now.epoch === epoch && now.owner === owner
