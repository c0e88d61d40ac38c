import { runInNewContext } from 'node:vm'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { InvalidOption } from '../../../src/services/errors.ts'
import type { ProbeContext, ToolContext } from '../../../src/services/tools/contract.ts'
import { type ToolDefinition, tool } from '../../../src/services/tools/tool.ts'

const pathSchema = {
  type: 'object',
  properties: { path: { type: 'string' }, depth: { type: 'integer', default: 3 } },
  required: ['path'],
} as const

/** A Standard Schema by hand: takes a string, gives its length; its promise is optional. */
function lengths(wrap: (result: Result) => Result | Promise<Result> = (result) => result) {
  type Input = { text: string }
  const schema: StandardSchemaV1<Input, { length: number }> = {
    '~standard': {
      version: 1,
      vendor: 'by-hand',
      validate: (value) => {
        const text: unknown = (value as Partial<Input> | null)?.text
        if (typeof text === 'string') return wrap({ value: { length: text.length } })
        return wrap({ issues: [{ message: 'must be text', path: ['text', { key: 0 }, 'odd key'] }] })
      },
    },
  }
  return schema
}
type Result = StandardSchemaV1.Result<{ length: number }>
const textSchema = { type: 'object', properties: { text: { type: 'string' } } } as const

const context: ToolContext = {
  signal: new AbortController().signal,
  sessionId: 's',
  turn: 1,
  step: 1,
  callId: 'c',
  run: 1,
  idempotencyKey: 'k',
  steer: () => ({ id: 'm', accepted: Promise.resolve({ seq: 0 }) }),
  inject: () => ({ id: 'm', accepted: Promise.resolve({ seq: 0 }) }),
  addContext: () => undefined,
  concludeTurn: () => undefined,
  progress: () => undefined,
}
const define = (more: Partial<ToolDefinition<typeof pathSchema>> = {}) =>
  tool({ name: 'look', description: 'Looks.', parameters: pathSchema, execute: () => undefined, ...more })
const optionOf = (make: () => unknown): string => {
  try {
    make()
  } catch (error) {
    if (error instanceof InvalidOption) return `${error.option}: ${error.message}`
    throw error
  }
  return 'accepted'
}

describe('a definition', () => {
  test('[tools-038] shows the model name, description and parameters only', () => {
    const made = define({ timeoutMs: 1000, approvalExpiresMs: 60_000, repeatable: true })
    expect(made.schema).toEqual({ name: 'look', description: 'Looks.', parameters: pathSchema })
    expect(made).toMatchObject({ timeoutMs: 1000, approvalExpiresMs: 60_000, repeatable: true, onCrash: 'unknown' })
  })

  test.each([0, -1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31])('[tools-038] refuses %d as a delay', (ms) => {
    expect(optionOf(() => define({ timeoutMs: ms }))).toMatch(/^timeoutMs: .*"look"/)
    expect(optionOf(() => define({ approvalExpiresMs: ms }))).toMatch(/^approvalExpiresMs: /)
  })

  test.each(['', 'a b', 'ü', 'x'.repeat(65), 'a.b'])('refuses %j as a name', (name) => {
    expect(optionOf(() => define({ name }))).toMatch(/^name: /)
  })

  test('refuses parameters that are not an object', () => {
    const make = () => tool({ name: 'n', description: '', parameters: { type: 'string' }, execute: () => 1 })
    expect(optionOf(make)).toMatch(/^parameters: .*"object"/)
  })

  test('keeps its schema whatever the caller does to it later', async () => {
    const parameters = { type: 'object', required: ['a'] }
    const made = tool({ name: 'n', description: '', parameters, execute: () => 1 })
    parameters.required.push('b')
    expect(made.schema.parameters).toEqual({ type: 'object', required: ['a'] })
    expect(await made.parse({ a: 1 })).toMatchObject({ kind: 'ok' })
  })

  test('infers what the body gets from the schema', () => {
    tool({
      name: 'n',
      description: '',
      parameters: lengths(),
      jsonSchema: textSchema,
      mode: (args) => (args.length > 1 ? 'parallel' : 'exclusive'),
      needsApproval: (args) => args.length > 1,
      meta: (args) => ({ length: args.length }),
      execute(args, { signal }) {
        expectTypeOf(args).toEqualTypeOf<{ length: number }>()
        expectTypeOf(signal).toEqualTypeOf<AbortSignal>()
      },
    })
    tool({
      name: 'n',
      description: '',
      parameters: { type: 'object', properties: { a: { type: 'string' } } },
      execute: (args) => expectTypeOf(args).toBeUnknown(),
    })
  })
})

describe('a Standard Schema', () => {
  test('must state its JSON Schema, or be given one', () => {
    const make = () => tool({ name: 'measure', description: '', parameters: lengths(), execute: () => 1 })
    expect(optionOf(make)).toMatch(/^parameters: .*"measure".*`jsonSchema`/)
  })

  test('states it through ~standard.jsonSchema, in the newest dialect it can', () => {
    const asked: unknown[] = []
    const { '~standard': standard } = lengths()
    const jsonSchema = {
      input: (options: { target: string }) => {
        asked.push(options.target)
        if (options.target !== 'draft-07') throw new Error('cannot')
        return { $schema: 'http://json-schema.org/draft-07/schema#', ...textSchema, title: undefined }
      },
    }
    const parameters = { '~standard': { ...standard, jsonSchema } }
    const made = tool({ name: 'n', description: '', parameters, execute: () => 1 })
    expect(made.parameters).toEqual(textSchema)
    expect(asked).toEqual(['draft-2020-12', 'draft-07'])
  })

  test('states it through toJSONSchema, for its input', () => {
    const parameters = { ...lengths(), toJSONSchema: (o: { io?: string }) => ({ ...textSchema, title: o.io }) }
    expect(tool({ name: 'n', description: '', parameters, execute: () => 1 }).parameters.title).toBe('input')
  })

  test.each([
    ['at once', lengths()],
    ['later', lengths(async (result) => result)],
  ])('that answers %s gives its parsed output, or its issues with their paths', async (_, parameters) => {
    const made = tool({
      name: 'n',
      description: '',
      parameters,
      jsonSchema: textSchema,
      execute: (args) => args.length,
    })
    expect(await made.parse({ text: 'four' })).toEqual({ kind: 'ok', args: { length: 4 } })
    expect(await made.parse({ text: 4 })).toEqual({
      kind: 'invalid',
      message: 'The arguments of n are invalid:\n$.text[0]["odd key"]: must be text',
    })
    expect(made.execute({ length: 4 }, context)).toBe(4)
  })

  test.each([
    [
      'throws',
      () => {
        throw new Error('broken')
      },
    ],
    [
      'rejects',
      async () => {
        throw new Error('broken')
      },
    ],
  ])('that %s makes the arguments invalid', async (_, wrap) => {
    const made = tool({
      name: 'n',
      description: '',
      parameters: lengths(wrap),
      jsonSchema: textSchema,
      execute: () => 1,
    })
    expect(await made.parse({ text: '' })).toMatchObject({
      kind: 'invalid',
      message: expect.stringMatching(/could not be checked: broken/),
    })
  })

  test('that throws what cannot be read makes the arguments invalid', async () => {
    const parameters = lengths(() => {
      throw {
        toString() {
          throw new Error()
        },
      }
    })
    const made = tool({ name: 'n', description: '', parameters, jsonSchema: textSchema, execute: () => 1 })
    expect(await made.parse({ text: '' })).toMatchObject({ message: expect.stringContaining('an unreadable error') })
  })

  test("that answers with another realm's promise is waited for", async () => {
    const foreign: PromiseConstructor = runInNewContext('Promise')
    const parameters = lengths((result) => foreign.resolve(result))
    const made = tool({ name: 'n', description: '', parameters, jsonSchema: textSchema, execute: () => 1 })
    expect(await made.parse({ text: 1 })).toMatchObject({ kind: 'invalid' })
    expect(made.modeOf({ text: 'a' })).toBe('exclusive')
  })
})

describe('a JSON Schema', () => {
  test('[tools-006] lists violations with their places', async () => {
    const parameters = {
      type: 'object',
      properties: {
        path: { type: 'array', items: { type: 'string' } },
        kind: { enum: ['a', 'b'] },
        'odd/key': { type: 'object', additionalProperties: false },
      },
      required: ['name'],
    }
    const made = tool({ name: 'n', description: '', parameters, execute: () => 1 })
    const parsed = await made.parse({ path: [3], kind: 'c', 'odd/key': { x: 1 } })
    expect(parsed).toEqual({
      kind: 'invalid',
      message: [
        'The arguments of n are invalid:',
        "$: must have required property 'name'",
        '$.path[0]: must be string',
        '$.kind: must be equal to one of the allowed values: ["a","b"]',
        '$["odd/key"]: must NOT have additional properties: "x"',
      ].join('\n'),
    })
  })

  test('[tools-007] applies no defaults, allows extra keys and coerces nothing', async () => {
    expect(await define().parse({ path: 'a', more: 1 })).toEqual({ kind: 'ok', args: { path: 'a', more: 1 } })
    expect(await define().parse({ path: 3 })).toMatchObject({
      kind: 'invalid',
      message: expect.stringMatching(/\$\.path: must be string/),
    })
  })

  test('gives the body a copy of its own', async () => {
    const args = Object.freeze({ path: 'a' })
    const parsed = await define().parse(args)
    expect(parsed.kind === 'ok' && !Object.isFrozen(parsed.args) && parsed.args !== args).toBe(true)
  })

  test('[tools-003] refuses a raw string in place of an object', async () => {
    expect(await define().parse('{bad')).toMatchObject({
      kind: 'invalid',
      message: expect.stringMatching(/\$: must be object/),
    })
  })

  test('of draft-07 keeps its own meaning', async () => {
    const parameters = {
      $schema: 'http://json-schema.org/draft-07/schema#',
      $id: 'shared',
      type: 'object',
      properties: { pair: { items: [{ type: 'string' }, { $ref: '#/definitions/n' }] } },
      definitions: { n: { type: 'number' } },
    }
    const [one, two] = ['one', 'two'].map((name) => tool({ name, description: '', parameters, execute: () => 1 }))
    expect(await one?.parse({ pair: ['a', 1] })).toMatchObject({ kind: 'ok' })
    expect(await two?.parse({ pair: ['a', 'b'] })).toMatchObject({
      message: expect.stringMatching(/\$\.pair\[1\]: must be number/),
    })
  })

  test('of 2020-12 keeps its own meaning', async () => {
    const parameters = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: { pair: { prefixItems: [{ type: 'string' }] } },
    }
    const made = tool({ name: 'n', description: '', parameters, execute: () => 1 })
    expect(await made.parse({ pair: [1] })).toMatchObject({
      message: expect.stringMatching(/\$\.pair\[0\]: must be string/),
    })
  })

  test('that does not compile answers the call instead of failing it', async () => {
    const parameters = { type: 'object', properties: { a: { $ref: '#/nowhere' } } }
    const made = tool({ name: 'n', description: '', parameters, execute: () => 1 })
    expect(await made.parse({})).toMatchObject({
      kind: 'invalid',
      message: expect.stringMatching(/could not be checked/),
    })
  })

  test('does not take what every object inherits for a property', async () => {
    const parameters = { type: 'object', required: ['constructor'] }
    expect(await tool({ name: 'n', description: '', parameters, execute: () => 1 }).parse({})).toMatchObject({
      kind: 'invalid',
    })
  })

  test('of 30 violations lists 20 and counts the rest', async () => {
    const parameters = { type: 'object', additionalProperties: { type: 'string' } }
    const made = tool({ name: 'n', description: '', parameters, execute: () => 1 })
    const parsed = await made.parse(Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`k${i}`, i])))
    expect(parsed).toMatchObject({ kind: 'invalid', message: expect.stringMatching(/\$\.k19: .*\nand 10 more$/) })
  })
})

describe('the mode', () => {
  const modeOf = (answer: unknown, args: unknown = { text: 'x' }, parameters = lengths()) => {
    const mode = () => (typeof answer === 'function' ? answer() : answer)
    return tool({ name: 'n', description: '', parameters, jsonSchema: textSchema, mode, execute: () => 1 }).modeOf(args)
  }

  test('is exclusive unless the tool or its classifier says parallel', () => {
    expect(define().modeOf({})).toBe('exclusive')
    expect(define({ mode: 'parallel' }).modeOf({})).toBe('parallel')
    expect(modeOf('parallel')).toBe('parallel')
  })

  test.each([
    ['says something else', () => modeOf('PARALLEL')],
    [
      'throws',
      () =>
        modeOf(() => {
          throw new Error('no')
        }),
    ],
    ['answers later', () => modeOf(async () => 'parallel')],
    ['rejects later', () => modeOf(() => Promise.reject(new Error('no')))],
    ['is asked about invalid arguments', () => modeOf('parallel', { text: 1 })],
    ['is asked about a raw string', () => modeOf('parallel', '{bad')],
    [
      'waits for its schema',
      () =>
        modeOf(
          'parallel',
          { text: 'x' },
          lengths(async (result) => result),
        ),
    ],
    [
      'waits for its failing schema',
      () =>
        modeOf(
          'parallel',
          { text: 'x' },
          lengths(() => Promise.reject(new Error())),
        ),
    ],
  ])('is exclusive when the classifier %s', (_, ask) => {
    expect(ask()).toBe('exclusive')
  })
})

describe('approval', () => {
  test('is needed if the tool says so, of the arguments or of all', async () => {
    expect(await define().needsApproval({})).toBe(false)
    expect(await define({ needsApproval: true }).needsApproval({})).toBe(true)
    const small = tool({
      name: 'n',
      description: '',
      parameters: lengths(),
      jsonSchema: textSchema,
      needsApproval: async (args) => args.length > 3,
      execute: () => 1,
    })
    expect(await small.needsApproval({ length: 3 })).toBe(false)
    expect(await small.needsApproval({ length: 4 })).toBe(true)
  })

  test('is needed if the function forgets to answer, and its throw goes on', async () => {
    const forgetful = define({ needsApproval: (() => undefined) as unknown as () => boolean })
    expect(await forgetful.needsApproval({})).toBe(true)
    const throwing = define({
      needsApproval: () => {
        throw new Error('cannot tell')
      },
    })
    await expect(throwing.needsApproval({})).rejects.toThrow('cannot tell')
  })
})

describe('after a crash', () => {
  const call: ProbeContext = {
    turn: 1,
    step: 1,
    callId: 'c',
    name: 'look',
    arguments: '{}',
    args: {},
    signal: context.signal,
    run: 1,
    idempotencyKey: 'k',
  }

  test('a function is a probe, and gets the call', async () => {
    const made = define({ onCrash: async ({ idempotencyKey }) => ({ kind: 'done', value: idempotencyKey }) })
    expect(made.onCrash).toBe('probe')
    expect(await made.probe?.(call)).toEqual({ kind: 'done', value: 'k' })
    expect(define({ onCrash: 'rerun' })).not.toHaveProperty('probe')
  })

  test.each([undefined, null, 'done', { kind: 'perhaps' }])('a probe that answers %j knows nothing', async (answer) => {
    const made = define({ onCrash: (async () => answer) as unknown as () => Promise<{ kind: 'unknown' }> })
    expect(await made.probe?.(call)).toEqual({ kind: 'unknown' })
  })

  test('a policy that does not exist is refused', () => {
    expect(optionOf(() => define({ onCrash: 'retry' as 'rerun' }))).toMatch(/^onCrash: /)
  })
})

describe('a returned value', () => {
  test.each([
    ['text', 'text', [{ type: 'text', text: 'text' }]],
    [{ a: [1, null] }, { a: [1, null] }, [{ type: 'text', text: '{"a":[1,null]}' }]],
    [null, null, [{ type: 'text', text: 'null' }]],
    [undefined, null, []],
  ])('%j is rendered for the model', async (returned, value, content) => {
    expect(await define().render(returned)).toEqual({ kind: 'ok', value, content })
  })

  test.each([
    [{ a: [1, undefined] }, '$.a[1]'],
    [{ n: 1n }, '$.n'],
    [{ when: new Date(0) }, '$.when'],
    [Number.NaN, '$'],
  ])('that is not JSON is invalid, with the place', async (returned, path) => {
    expect(await define().render(returned)).toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining(`at ${path}:`),
    })
  })

  test('that refuses to be read is invalid, with the place', async () => {
    const hostile = {
      get a(): never {
        throw new Error('no')
      },
    }
    expect(await define().render(hostile)).toMatchObject({ kind: 'invalid', message: expect.stringContaining('$.a') })
  })

  test('is checked against the declared output, and kept as it is', async () => {
    const made = define({ output: { type: 'object', properties: { lines: { type: 'integer' } }, required: ['lines'] } })
    expect(await made.render({ lines: 3, more: 1 })).toMatchObject({ kind: 'ok', value: { lines: 3, more: 1 } })
    expect(await made.render({ lines: 'x' })).toMatchObject({
      kind: 'invalid',
      message: expect.stringMatching(/\$\.lines: must be integer/),
    })
    expect(await made.render(undefined)).toMatchObject({ kind: 'invalid' })
    expect(await define({ output: lengths() }).render({ text: 'abc' })).toMatchObject({ value: { text: 'abc' } })
  })

  test('[tools-021] may come with metadata that must be JSON', () => {
    expect(define({ meta: (_, value) => ({ lines: String(value).length }) }).meta?.({}, 'abc')).toEqual({ lines: 3 })
    expect(() => define({ meta: () => [1n] as unknown as number[] }).meta?.({}, 1)).toThrow('$[0]')
    expect(define()).not.toHaveProperty('meta')
  })
})
