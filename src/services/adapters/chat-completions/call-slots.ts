/**
 * Which call a fragment belongs to. The wire has an index for that, and servers leave it out; then the id decides,
 * then the place in the list, then the call in progress.
 */
import type { CallArguments } from './call-arguments.ts'
import { textIn, type WireObject } from './wire-json.ts'

/** One call in the making. */
export interface CallSlot {
  readonly index: number
  id: string
  name: string
  readonly args: CallArguments
}

/** Finds the slot of each fragment, opening one with `open` where none is meant. */
export interface CallSlots {
  /** `place` is the fragment's position among the `among` of its list. */
  slotOf(fragment: WireObject, place: number, among: number): CallSlot
}

/** Slots for one answer. */
export function createCallSlots(open: () => CallSlot): CallSlots {
  const byIndex = new Map<number, CallSlot>()
  const byPlace = new Map<number, CallSlot>()
  const all: CallSlot[] = []
  let current: CallSlot | undefined

  const opened = (): CallSlot => {
    const slot = open()
    all.push(slot)
    return slot
  }
  const find = (fragment: WireObject, place: number, among: number): CallSlot => {
    const { index } = fragment
    if (typeof index === 'number') {
      const slot = byIndex.get(index)
      return slot === undefined || isSecondOfIndex(slot, fragment) ? remember(byIndex, index, opened()) : slot
    }
    const id = textIn(fragment.id)
    if (id !== '') return all.find((slot) => slot.id === id) ?? adopted(current, among) ?? opened()
    const meant = among > 1 ? byPlace.get(place) : current
    return meant === undefined || startsAnother(meant, fragment) ? opened() : meant
  }
  return {
    slotOf(fragment, place, among) {
      current = find(fragment, place, among)
      byPlace.set(place, current)
      return current
    },
  }
}

/** A single fragment may bring the id of the call that is in progress and has none yet. */
const adopted = (current: CallSlot | undefined, among: number): CallSlot | undefined =>
  among === 1 && current?.id === '' && current.name === '' ? current : undefined

/** Without index and id: another name, or a name after complete arguments, is another call. */
function startsAnother(slot: CallSlot, fragment: WireObject): boolean {
  const name = nameOf(fragment)
  if (name === '' || slot.name === '') return false
  return name !== slot.name || (argumentsOf(fragment) !== '' && slot.args.closed)
}

/**
 * Some servers number every call 0: then another id with another name, or after whole arguments, is another call. The
 * same call told again under a new id is not, for it would run twice.
 */
function isSecondOfIndex(slot: CallSlot, fragment: WireObject): boolean {
  const id = textIn(fragment.id)
  if (id === '' || slot.id === '' || id === slot.id || nameOf(fragment) === '' || slot.name === '') return false
  return nameOf(fragment) !== slot.name || (slot.args.closed && argumentsOf(fragment) !== slot.args.text())
}

function remember<K>(map: Map<K, CallSlot>, key: K, slot: CallSlot): CallSlot {
  map.set(key, slot)
  return slot
}

/** The fragment's function name, `''` if it brings none. */
export const nameOf = (fragment: WireObject): string => textIn(functionOf(fragment).name)

/** The fragment's piece of arguments. An object, as some servers send, is written as JSON. */
export function argumentsOf(fragment: WireObject): string {
  const args = functionOf(fragment).arguments
  if (typeof args === 'string') return args
  return args === undefined || args === null ? '' : JSON.stringify(args)
}

const functionOf = (fragment: WireObject): WireObject => {
  const { function: named } = fragment
  return typeof named === 'object' && named !== null ? (named as WireObject) : {}
}
