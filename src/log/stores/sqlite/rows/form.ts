/** A form at work: what an event says beyond it, and the event made again from that. */
import type { SessionEvent } from '../../../events.ts'
import { hasKeys, isCount } from '../../deltas.ts'
import { Damaged } from './checked.ts'
import { Choice, type EventForm, FORMS, type Form, Hole } from './forms.ts'
import type { Place } from './said.ts'

/** What fills the holes, in their order. A list is a choice: the number of its form and what fills that; or a list of choices. */
export type Filling = string | number | FillingJson | readonly Filling[]
export interface FillingJson {
  readonly json: unknown
}

/** Gives what fills the holes back, in their order. Each method throws Damaged. */
export interface Fillings {
  readonly place: Place
  word(): unknown
  /** The word that was given last. */
  again(): unknown
  json(): unknown
  /** The number of a form. */
  number(): number
  list(): Fillings
  isOver(): boolean
}

/** What an event says beyond its form. */
export class Match {
  readonly place: Place
  readonly fillings: readonly Filling[]

  constructor(place: Place, fillings: readonly Filling[]) {
    this.place = place
    this.fillings = fillings
  }
}

/** A form of events, by its number. */
export interface KnownForm {
  readonly number: number
  readonly form: EventForm
  /** It ends the block whose index is its first hole. */
  readonly endsBlock: boolean
  /** What `event` says beyond it, if it is of this form; it belongs to `place` where it does not say where. */
  match(event: SessionEvent, place: Place): Match | undefined
  /** The data of its event. @throws Damaged */
  data(fillings: Fillings): unknown
}

/** The forms of a type, in the order in which they are tried. */
export const formsOf = (type: string): readonly KnownForm[] => BY_TYPE.get(type) ?? NONE

/** @throws Damaged */
export function formAt(number: unknown): KnownForm {
  const form = typeof number === 'number' ? KNOWN_FORMS[number] : undefined
  if (form === undefined) throw new Damaged('a form of that number')
  return form
}

/** Of a value: whether it fits, and how it is made again. */
interface Pattern {
  fits(value: unknown, open: Matching): boolean
  /** @throws Damaged */
  make(from: Fillings): unknown
}

/** A match on its way. */
interface Matching {
  turn?: number
  step?: number
  attempt?: number
  fillings: Filling[]
  last?: unknown
}

function patternOf(form: Form): Pattern {
  if (form instanceof Hole) return form.kind === 'word' || form.kind === 'json' ? holePattern(form) : knownPattern(form)
  if (form instanceof Choice) return form.many ? listOfChoices(form) : choicePattern(form)
  if (isList(form)) return listPattern(form.map(patternOf))
  return typeof form === 'object' ? fieldsPattern(form) : { fits: (value) => value === form, make: () => form }
}

const isList = (form: Form): form is readonly Form[] => Array.isArray(form)

function holePattern({ kind, takes }: Hole): Pattern {
  const isWord = kind === 'word'
  return {
    fits(value, open) {
      if (!takes(value)) return false
      open.fillings.push(isWord ? (value as string | number) : { json: value })
      open.last = value
      return true
    },
    make: (from) => taken(takes, isWord ? from.word() : from.json()),
  }
}

/** Of what who reads knows already. */
function knownPattern({ kind, takes }: Hole): Pattern {
  if (kind === 'again') {
    return { fits: (value, open) => value === open.last && takes(value), make: (from) => taken(takes, from.again()) }
  }
  const field = kind as keyof Place
  return {
    fits(value, open) {
      if (!takes(value) || (open[field] !== undefined && open[field] !== value)) return false
      open[field] = value as number
      return true
    },
    make: (from) => taken(takes, from.place[field]),
  }
}

function taken(takes: (value: unknown) => boolean, value: unknown): unknown {
  if (takes(value)) return value
  throw new Damaged('what its form does not take')
}

function choicePattern({ forms }: Choice): Pattern {
  const patterns = forms.map(patternOf)
  return {
    fits(value, open) {
      const outer = open.fillings
      for (const [number, pattern] of patterns.entries()) {
        open.fillings = [number]
        const fits = pattern.fits(value, open)
        const inner = open.fillings
        open.fillings = outer
        if (fits) return outer.push(inner) > 0
      }
      return false
    },
    make(from) {
      const inner = from.list()
      const value = (patterns[inner.number()] ?? NO_PATTERN).make(inner)
      return whole(inner, value)
    },
  }
}

const NO_PATTERN: Pattern = {
  fits: () => false,
  make: () => {
    throw new Damaged('a choice of that number')
  },
}

function whole<T>(fillings: Fillings, value: T): T {
  if (fillings.isOver()) return value
  throw new Damaged('more than its form has room for')
}

function listOfChoices(choice: Choice): Pattern {
  const one = choicePattern(choice)
  return {
    fits(value, open) {
      if (!Array.isArray(value)) return false
      const outer = open.fillings
      open.fillings = []
      const fits = value.every((item) => one.fits(item, open))
      outer.push(open.fillings)
      open.fillings = outer
      return fits
    },
    make(from) {
      const inner = from.list()
      const items: unknown[] = []
      while (!inner.isOver()) items.push(one.make(inner))
      return items
    },
  }
}

const listPattern = (patterns: readonly Pattern[]): Pattern => ({
  fits: (value, open) =>
    Array.isArray(value) &&
    value.length === patterns.length &&
    patterns.every((pattern, i) => pattern.fits(value[i], open)),
  make: (from) => patterns.map((pattern) => pattern.make(from)),
})

function fieldsPattern(form: { readonly [key: string]: Form }): Pattern {
  const keys = Object.keys(form)
  const patterns = Object.values(form).map(patternOf)
  return {
    fits(value, open) {
      if (!hasKeys(value, keys)) return false
      const record = value as { readonly [key: string]: unknown }
      return patterns.every((pattern, i) => pattern.fits(record[keys[i] as string], open))
    },
    make(from) {
      const record: { [key: string]: unknown } = {}
      for (let i = 0; i < keys.length; i++) record[keys[i] as string] = (patterns[i] as Pattern).make(from)
      return record
    },
  }
}

const BLOCK_END = '"type":"block-end"'

const KNOWN_FORMS: readonly KnownForm[] = FORMS.map((form, number) => {
  const pattern = patternOf(form.data)
  const keys = ['type', 'seq', 'time', 'data']
  if (form.surfaceOp !== undefined) keys.push('surfaceOp')
  if (form.cites === true) keys.push('sourceEventSeqs')
  return {
    number,
    form,
    endsBlock: JSON.stringify(form.data).includes(BLOCK_END),
    match(event, place) {
      if (!hasKeys(event, keys) || event.surfaceOp !== form.surfaceOp || !isCount(event.time)) return undefined
      const open: Matching = { fillings: [] }
      if (!pattern.fits(event.data, open)) return undefined
      const { turn = place.turn, step = place.step, attempt = place.attempt, fillings } = open
      return new Match({ turn, step, attempt }, fillings)
    },
    data: (fillings) => whole(fillings, pattern.make(fillings)),
  }
})

const NONE: readonly KnownForm[] = []
const BY_TYPE = new Map<string, readonly KnownForm[]>()
for (const known of KNOWN_FORMS) BY_TYPE.set(known.form.type, [...formsOf(known.form.type), known])
