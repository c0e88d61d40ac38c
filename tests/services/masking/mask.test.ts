/** What is masked, what is left alone, and that cutting a text into pieces changes neither. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createMask, type TextKind } from '../../../src/services/masking/mask.ts'
import { jsonPatterns, textPatterns } from '../../../src/services/masking/patterns.ts'

const plain = createMask()

describe('registered values', () => {
  const secret = 'p"q\\r/sé\n&1'
  const mask = createMask({ secrets: [secret, 'hunter2'] })

  test.each([
    ['as it is', secret],
    ['as a JSON string', JSON.stringify(secret).slice(1, -1)],
    ['as a JSON string in a JSON string', JSON.stringify(JSON.stringify(secret).slice(1, -1)).slice(1, -1)],
    ['with every escape there is', 'p\\u0022q\\u005Cr\\/s\\u00E9\\u000a&1'],
    ['percent-encoded', encodeURIComponent(secret)],
    ['percent-encoded in lower case', encodeURIComponent(secret).toLowerCase()],
    ['as base64', Buffer.from(secret).toString('base64')],
    ['as base64 for URLs', Buffer.from(secret).toString('base64url')],
  ])('are found %s', (_, form) => {
    expect(mask.text(`<${form}>`)).toBe('<[secret]>')
  })

  test('that overlap leave nothing of either', () => {
    const both = createMask({ secrets: ['abcdef', 'defghi', 'abcdefghijk'] })
    expect(both.text('abcdefghi abcdefghijk abcdef')).toBe('[secret] [secret] [secret]')
  })

  test('are found in keys and numbers of data', () => {
    expect(mask.json({ hunter2: 1, list: ['x hunter2'], n: 12 })).toEqual({
      '[secret]': 1,
      list: ['x [secret]'],
      n: 12,
    })
    expect(createMask({ secrets: ['345678'] }).json([12345678, 12])).toEqual(['[secret]', 12])
  })

  test.each([[['abc']], [['']], [[' ', 'x']]])('shorter than four characters are refused: %j', (secrets) => {
    expect(() => createMask({ secrets })).toThrow(expect.objectContaining({ option: 'secrets[0]' }))
  })

  test('are refused by place, and never shown', () => {
    expect(() => createMask({ secrets: ['long enough', 'xyz'] })).toThrow(
      expect.objectContaining({ option: 'secrets[1]', message: expect.not.stringContaining('xyz') }),
    )
    expect(() => createMask({ secrets: ['secret'] })).toThrow(/mark/)
  })
})

describe('what looks like a credential', () => {
  test.each([
    ['Authorization: Bearer abc', 'Authorization: Bearer abc'],
    ['Authorization: Bearer topsecret', 'Authorization: Bearer [secret]'],
    ['authorization: basic dXNlcjpwYXNz', 'authorization: basic [secret]'],
    ['PROXY-AUTHORIZATION: Basic dXNlcjpwYXNz', 'PROXY-AUTHORIZATION: Basic [secret]'],
    ['Authorization: token 0a1b2c3d4e', 'Authorization: token [secret]'],
    ['authorization: 0a1b2c3d4e', 'authorization: [secret]'],
    ["-H 'Authorization: Bearer eyJh.eyJz.sig'", "-H 'Authorization: Bearer [secret]'"],
    ['line\\nAuthorization: Bearer eyJh.eyJz', 'line\\nAuthorization: Bearer [secret]'],
    ['sent Bearer eyJh.eyJz.sig= to it', 'sent Bearer [secret] to it'],
    ['Bearer Bearer a1b2c3', 'Bearer Bearer [secret]'],
    ['with Basic dXNlcjpwYXNz', 'with Basic [secret]'],
    ['x-api-key: s3cr3t-value', 'x-api-key: [secret]'],
    ['OPENAI_API_KEY=a1b2c3d4', 'OPENAI_API_KEY=[secret]'],
    ['access_token=a1b2c3d4&x=1', 'access_token=[secret]&x=1'],
    ['https://host/v1?key=AIza0123456&b=2', 'https://host/v1?key=[secret]&b=2'],
    ['Set-Cookie: sid=abc; Path=/\r\nnext', 'Set-Cookie: [secret]\r\nnext'],
    ['key sk-proj-abc123DEF456 used', 'key [secret] used'],
    ['sk-abcdefghijklmnopqrst', '[secret]'],
    ['ghp_abcdefgh12345678', '[secret]'],
    ['xoxb-12345-67890', '[secret]'],
    ['id AKIAIOSFODNN7EXAMPLE.', 'id [secret].'],
    ['postgres://user:p4ss@db.local/x', 'postgres://[secret]@db.local/x'],
    ['a -----BEGIN RSA PRIVATE KEY-----\nMIIE+/=\n-----END RSA PRIVATE KEY----- b', 'a [secret] b'],
    ['-----BEGIN PRIVATE KEY-----\\nMIIE', '[secret]'],
  ])('%s', (given, shown) => {
    expect(plain.text(given)).toBe(shown)
    expect(plain.text(shown)).toBe(shown)
  })

  test.each([
    'the bearer of bad news',
    'Bearer tokens are sent as Bearer <token>',
    'WWW-Authenticate: Bearer realm="x"',
    'Basic authentication, Basic JavaScript',
    'Authorization: <token>',
    'Authorization: {token}',
    'api_key=process.env.API_KEY',
    'apiKey: string',
    'const apiKey = readKey2()',
    'maxTokens: 4096, inputTokens=1200000',
    'password: string',
    'cookie: none',
    'sk-learn-contrib',
    'git@github.com:o/r.git ssh://git@github.com/o/r https://host:8080/@scope/pkg',
    'postgres://user:{PASS}@db',
    '{"maxTokens":12,"tokens":["a"]}',
  ])('is not: %s', (text) => {
    expect(plain.text(text)).toBe(text)
    expect(plain.text(text, 'json')).toBe(text)
  })

  test('by the keys of data, however they are written', () => {
    const data = {
      Authorization: 'x',
      headers: { 'X-API-Key': 'abc', 'set-cookie': ['a=b', 'c=d'], accept: 'text' },
      accessToken: 12345,
      api_key: null,
      password: { min: 8 },
      maxTokens: 5,
    }
    expect(plain.json(data)).toEqual({
      Authorization: '[secret]',
      headers: { 'X-API-Key': '[secret]', 'set-cookie': ['[secret]'], accept: 'text' },
      accessToken: '[secret]',
      api_key: null,
      password: { min: 8 },
      maxTokens: 5,
    })
  })

  test('by the keys of JSON text, which stays JSON', () => {
    const text = '{ "password": "a\\"b", "pin": 1, "client-secret" : -12.5, "cookie":["a]=1", "b"], "secret":"" }'
    const shown = plain.text(text, 'json')
    expect(JSON.parse(shown)).toEqual({
      password: '[secret]',
      pin: 1,
      'client-secret': '[secret]',
      cookie: ['[secret]'],
      secret: '',
    })
    expect(plain.text(shown, 'json')).toBe(shown)
  })
})

test('data without a secret is the same value, and `__proto__` stays a key', () => {
  const data = JSON.parse('{"__proto__":{"x":1},"a":["b"]}')
  expect(plain.json(data)).toBe(data)
  const shown = plain.json(JSON.parse('{"__proto__":{"x":1},"password":"b"}'))
  expect(Object.keys(shown as object)).toEqual(['__proto__', 'password'])
  expect(({} as { x?: number }).x).toBeUndefined()
})

describe('a text in pieces', () => {
  const SECRETS = ['hunter2', 'ab"c\\d\né', 'abcabcabd', 'bcabc', 'x&y z']
  const fragments = [
    ...SECRETS,
    ...SECRETS.map((secret) => JSON.stringify(secret).slice(1, -1)),
    ...SECRETS.map((secret) => encodeURIComponent(secret)),
    ...SECRETS.map((secret) => Buffer.from(secret).toString('base64')),
    'Authorization: Bearer ',
    'Authorization',
    'bearer ',
    'Basic dXNlcjpwYXNz',
    'x-api-key: ',
    'api_key=',
    'a1b2c3d4',
    'sk-',
    'sk-abc123DEF456',
    'ghp_abcdefgh12',
    'AKIAIOSFODNN7EXAMPLE',
    '-----BEGIN PRIVATE KEY-----',
    '-----END PRIVATE KEY-----',
    'https://',
    'user:pa5s@host',
    'Cookie: a=b; c',
    '"password": "',
    '"secret":12',
    '"cookie": ["a", ',
    '?key=',
    '\\',
    '\\u00e9',
    '%',
    '"',
    ']',
    '@',
    '=',
    '(',
    '-',
    ' ',
    '\n',
    'word',
    's',
    'abc',
  ]
  const texts = fc
    .array(fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...fragments) }, fc.string({ maxLength: 4 })), {
      maxLength: 12,
    })
    .map((parts) => parts.join(''))
  const kinds = fc.constantFrom<TextKind>('text', 'json')

  const cut = (text: string, places: readonly number[]): string[] => {
    const at = [...new Set(places.map((place) => place % (text.length + 1)))].sort((a, b) => a - b)
    return [0, ...at].map((from, i) => text.slice(from, at[i]))
  }
  const masks = [plain, createMask({ secrets: SECRETS })]

  test('is masked as the whole is, wherever it is cut', () => {
    fc.assert(
      fc.property(
        texts,
        fc.array(fc.nat(), { maxLength: 8 }),
        kinds,
        fc.constantFrom(...masks),
        (text, at, kind, mask) => {
          const stream = mask.stream(kind)
          const said = cut(text, at).map((piece) => stream.push(piece))
          expect([...said, stream.end()].join('')).toBe(mask.text(text, kind))
        },
      ),
      { numRuns: 500 },
    )
  })

  test('is passed over at a quick look only where a slow one finds nothing either', () => {
    const odd = fc.oneof(texts, fc.string({ unit: 'binary', maxLength: 6 }))
    const patterns = fc.constantFrom(textPatterns, jsonPatterns)
    fc.assert(
      fc.property(odd, odd, patterns, (text, before, { mayBegin, suspects }) => {
        if (suspects(before + text, before.length)) expect(mayBegin(text, before)).toBe(true)
        // What came before is looked at where it ends, and nowhere else.
        expect(mayBegin(text, before.slice(-8))).toBe(mayBegin(text, before))
      }),
      { numRuns: 1_000 },
    )
  })

  test('and a character at a time', () => {
    fc.assert(
      fc.property(texts, kinds, fc.constantFrom(...masks), (text, kind, mask) => {
        const stream = mask.stream(kind)
        const said = text.split('').map((piece) => stream.push(piece))
        expect([...said, stream.end()].join('')).toBe(mask.text(text, kind))
      }),
      { numRuns: 250 },
    )
  })

  test('and holds no secret, whole or in the pieces that come out, and is masked once and for all', () => {
    const mask = createMask({ secrets: SECRETS })
    fc.assert(
      fc.property(texts, fc.array(fc.nat(), { maxLength: 8 }), kinds, (text, at, kind) => {
        const stream = mask.stream(kind)
        const said = [...cut(text, at).map((piece) => stream.push(piece)), stream.end()]
        for (const secret of SECRETS) expect(said.join('')).not.toContain(secret)
        const shown = mask.text(text, kind)
        expect(mask.text(shown, kind)).toBe(shown)
      }),
      { numRuns: 250 },
    )
  })

  test('is held no longer than it may be a secret', () => {
    const stream = createMask({ secrets: ['hunter2'] }).stream()
    expect(['the ', 'hun', 'ts', 'man', ' hunt', 'er', '2 of', ' bear', 'ings'].map(stream.push)).toEqual([
      'the ',
      '',
      'hunts',
      'man',
      ' ',
      '',
      '[secret] of',
      ' ',
      'bearings',
    ])
    expect(stream.end()).toBe('')
  })

  test('costs its length once, also where it never ends to be a secret', () => {
    const stream = plain.stream('json')
    const said = [stream.push('"password": "')]
    for (let i = 0; i < 20_000; i++) said.push(stream.push('abcd'))
    expect([...said, stream.end()].join('')).toBe('"password": "[secret]')
  })
})
