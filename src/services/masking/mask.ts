/**
 * Masks secrets: registered values wherever they stand, and what looks like a credential. A mask is pure. What was
 * masked once stays as it is when it is masked again, so that a value may pass here on every way it takes into the log.
 */
import type { Json } from '../../log/json.ts'
import { InvalidOption } from '../errors.ts'
import { createNeedles, type Needles } from './needles.ts'
import { isSecretKey, jsonPatterns, type Patterns, textPatterns } from './patterns.ts'
import { joined, MARK, outside, replaced, type Span } from './spans.ts'

export interface MaskOptions {
  /** Values that are masked wherever they stand; at least 4 characters each. */
  readonly secrets?: readonly string[]
}

/** 'json' is text that is JSON or shows some: keys such as `password` mask their values there. */
export type TextKind = 'text' | 'json'

/** Masks a text that comes in pieces: all it gave, joined, is the mask of all it took, joined. */
export interface TextMask {
  /** What can be said by now; the rest may yet become a secret. */
  push(piece: string): string
  /** What was held, masked; the text is over, and another may begin. */
  end(): string
  /** How many characters are held. */
  readonly held: number
}

export interface Mask {
  text(text: string, kind?: TextKind): string
  /** Text inside, secret keys' values, and registered values in keys and numbers. The value itself if nothing changed. */
  json(value: Json): Json
  /** Registered values alone, in strings, keys and numbers. */
  values(value: Json): Json
  stream(kind?: TextKind): TextMask
}

/** Shorter values are parts of ordinary words. */
const LEAST = 4

/**
 * The mask of these secrets: the same one for as long as somebody has it.
 * @throws InvalidOption naming `secrets[i]`, never its value.
 */
export function createMask({ secrets = [] }: MaskOptions = {}): Mask {
  checkSecrets(secrets)
  if (secrets.length === 0) return patternsOnly
  const key = JSON.stringify(secrets)
  const known = inUse.get(key)?.deref()
  if (known !== undefined) return known
  const mask = maskOf(secrets)
  inUse.set(key, new WeakRef(mask))
  dropped.register(mask, key)
  return mask
}

/** Masks that somebody has, by their secrets. */
const inUse = new Map<string, WeakRef<Finding>>()
const dropped = new FinalizationRegistry<string>((key) => {
  if (inUse.get(key)?.deref() === undefined) inUse.delete(key)
})

/**
 * A text under every mask that is in use: for what the whole process may see, and what belongs to no agent that could
 * be asked for its own.
 */
export function maskedByAll(text: string): string {
  // All on the text as it is: what one had masked would hide from the next that a longer secret of its own stood there.
  const spans = [...inUse.values()].flatMap((ref) => ref.deref()?.find(text) ?? [])
  return replaced(text, joined([...patternsOnly.find(text), ...spans]))
}

/** A mask that also says where it finds something. */
interface Finding extends Mask {
  find(text: string): readonly Span[]
}

function maskOf(secrets: readonly string[]): Finding {
  const needles = createNeedles(secrets)
  const rules = { text: rulesOf(needles, textPatterns), json: rulesOf(needles, jsonPatterns) }
  const text = (value: string, kind: TextKind = 'text'): string => {
    const spans = rules[kind].find(value, 0)
    return spans.length === 0 ? value : replaced(value, spans)
  }
  const registered = (value: string): string => {
    const spans = joined(needles.find(value))
    return spans.length === 0 ? value : replaced(value, spans)
  }
  return {
    text,
    find: (value) => rules.text.find(value, 0),
    json: (value) => maskJson(value, { text: (part) => text(part, 'json'), registered, isSecretKey }),
    values: (value) =>
      secrets.length === 0 ? value : maskJson(value, { text: registered, registered, isSecretKey: () => false }),
    stream: (kind = 'text') => createTextMask(rules[kind]),
  }
}

/** Without registered values: one for all agents that have none. */
export const patternsOnly: Finding = maskOf([])

function checkSecrets(secrets: readonly string[]): void {
  if (!Array.isArray(secrets)) throw new InvalidOption('secrets', 'must be a list of strings')
  secrets.forEach((secret: unknown, i) => {
    const option = `secrets[${i}]`
    if (typeof secret !== 'string' || secret.length < LEAST) {
      throw new InvalidOption(option, `must be a string of at least ${LEAST} characters`)
    }
    if (MARK.includes(secret)) throw new InvalidOption(option, 'is a part of the mark that would stand in its place')
  })
}

interface Rules {
  /** False if `suspects` would be, of `before` and `text` from where `text` begins. */
  mayBegin(text: string, before: string): boolean
  /** False if nothing from `from` on is a secret, or the beginning of one. */
  suspects(text: string, from: number): boolean
  find(text: string, from: number): readonly Span[]
  open(text: string, from: number): number
}

function rulesOf(needles: Needles, patterns: Patterns): Rules {
  return {
    mayBegin: (text, before) => needles.any || patterns.mayBegin(text, before),
    suspects: (text, from) => patterns.suspects(text, from) || needles.suspects(text, from),
    find: (text, from) => joined([...needles.find(text, from), ...patterns.find(text, from)]),
    open: (text, from) => Math.min(needles.open(text, from), patterns.open(text, from)),
  }
}

/** What the rules look at before a place: at most a mark. */
const CONTEXT = MARK.length
/** A held text longer than this is looked at again only when it has doubled. */
const PATIENT = 1_024

function createTextMask({ mayBegin, suspects, find, open }: Rules): TextMask {
  let before = ''
  let held = ''
  let wait = 0

  const say = (text: string, spans: readonly Span[], to: number): string => {
    const said = replaced(text, spans, before.length, to)
    held = text.slice(to)
    before = text.slice(Math.max(0, to - CONTEXT), to)
    wait = held.length > PATIENT ? held.length * 2 : 0
    return said
  }
  return {
    push(piece) {
      if (held === '' && (!mayBegin(piece, before) || !suspects(before + piece, before.length))) {
        before = piece.length >= CONTEXT ? piece.slice(-CONTEXT) : (before + piece).slice(-CONTEXT)
        return piece
      }
      held += piece
      if (held.length < wait) return ''
      const text = before + held
      if (!suspects(text, before.length)) return say(text, [], text.length)
      const spans = find(text, before.length)
      // A secret that is whole may still grow into one that overlaps it.
      return say(text, spans, outside(spans, open(text, before.length)))
    },
    end() {
      if (held === '') {
        before = ''
        return ''
      }
      const text = before + held
      const said = say(text, find(text, before.length), text.length)
      before = ''
      return said
    },
    get held() {
      return held.length
    },
  }
}

interface JsonRules {
  text(text: string): string
  registered(text: string): string
  isSecretKey(key: string): boolean
}

/** JSON from outside: data, whatever its keys are called. Objects keep their order of keys. */
function maskJson(value: Json, rules: JsonRules): Json {
  switch (typeof value) {
    case 'string':
      return rules.text(value)
    case 'number':
      return rules.registered(String(value)) === String(value) ? value : MARK
    case 'object':
      return value === null ? null : isList(value) ? maskList(value, rules) : maskRecord(value, rules)
    default:
      return value
  }
}

const isList = (value: object): value is readonly Json[] => Array.isArray(value)

function maskList(list: readonly Json[], rules: JsonRules): Json {
  const masked = list.map((item) => maskJson(item, rules))
  return masked.some((item, i) => item !== list[i]) ? masked : list
}

function maskRecord(record: { readonly [key: string]: Json }, rules: JsonRules): Json {
  let changed = false
  const entries = Object.entries(record).map(([key, value]): [string, Json] => {
    const shown = rules.registered(key)
    const masked = rules.isSecretKey(key) ? maskSecret(value, rules) : maskJson(value, rules)
    if (shown !== key || masked !== value) changed = true
    return [shown, masked]
  })
  // `fromEntries` defines each key, `__proto__` too: as data.
  return changed ? Object.fromEntries(entries) : record
}

/** The value of a key that says it is a secret; an object is not one, and is looked into. */
function maskSecret(value: Json, rules: JsonRules): Json {
  if (typeof value === 'string') return value === '' ? value : MARK
  if (typeof value === 'number') return MARK
  if (typeof value !== 'object' || value === null || !isList(value)) return maskJson(value, rules)
  return value.length === 0 || (value.length === 1 && value[0] === MARK) ? value : [MARK]
}
