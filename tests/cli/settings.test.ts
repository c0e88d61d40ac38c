import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'
import {
  chooseModel,
  keysIn,
  positiveInteger,
  rootDirectory,
  sessionName,
  shellWord,
  stateDirectory,
  storePath,
} from '../../src/cli/settings.ts'

test('the state directory follows the customs of the platform', () => {
  expect(stateDirectory({}, 'linux')).toBe(join(homedir(), '.local/state/pawl'))
  expect(stateDirectory({ XDG_STATE_HOME: '/state' }, 'linux')).toBe('/state/pawl')
  expect(stateDirectory({ XDG_STATE_HOME: 'relative' }, 'linux')).toBe(join(homedir(), '.local/state/pawl'))
  expect(stateDirectory({}, 'darwin')).toBe(join(homedir(), 'Library/Application Support/pawl'))
  expect(stateDirectory({ LOCALAPPDATA: '/local' }, 'win32')).toBe(join('/local', 'pawl'))
})

test('the store is the flag, else PAWL_STORE, else in the state directory', () => {
  const env = { PAWL_STORE: '/env.db', XDG_STATE_HOME: '/state' }
  expect(storePath('flag.db', env)).toBe(resolve('flag.db'))
  expect(storePath(undefined, env)).toBe('/env.db')
  expect(storePath(undefined, { ...env, PAWL_STORE: '' })).toBe(join(stateDirectory(env), 'pawl.db'))
})

test.each([
  ['demo with neither key nor server, by default', {}, {}, 'pawl/demo', true],
  ['the default one with a key', {}, { DEEPSEEK_API_KEY: 'k' }, 'deepseek/deepseek-chat', false],
  ['the default one with a server', { baseUrl: 'http://127.0.0.1:1' }, {}, 'deepseek/deepseek-chat', false],
  ['demo when it is named, key or not', { model: 'demo' }, { DEEPSEEK_API_KEY: 'k' }, 'pawl/demo', false],
  ['a model of DeepSeek', { model: 'deepseek-reasoner' }, {}, 'deepseek/deepseek-reasoner', false],
  ['a model of a known server', { model: 'm', dialect: 'mistral' }, {}, 'openai-compatible/m', false],
  ['a model of the server', { model: 'llama', baseUrl: 'http://x/v1' }, {}, 'openai-compatible/llama', false],
])('the model is %s', (_, flags, env, model, defaulted) => {
  const chosen = chooseModel(flags, env)
  expect(`${chosen.adapter.provider}/${chosen.adapter.model}`).toBe(model)
  expect(chosen.defaulted).toBe(defaulted)
})

test('what cannot be is said in words', () => {
  expect(() => chooseModel({ baseUrl: 'ftp://x' }, {})).toThrow('no http(s) URL')
  expect(() => chooseModel({ baseUrl: 'nonsense' }, {})).toThrow('no http(s) URL')
  expect(() => chooseModel({ model: ' ' }, {})).toThrow('--model needs a name')
  expect(() => chooseModel({ model: 'demo', baseUrl: 'http://x' }, {})).toThrow('the demo model has none')
  expect(() => rootDirectory('/no/such/folder')).toThrow('no folder /no/such/folder')
  expect(() => rootDirectory('package.json')).toThrow('is not a folder')
  for (const text of ['0', '-1', '1.5', 'x', '', '1e3', '99999999999999999999']) {
    expect(() => positiveInteger('--max-steps', text)).toThrow('--max-steps')
  }
  for (const name of ['', '  ', 'a\nb', 'x'.repeat(201)]) expect(() => sessionName(name)).toThrow('a session is named')
})

test('a dialect needs a model, and an address where it has none', () => {
  const baseUrl = 'http://127.0.0.1:1'
  expect(() => chooseModel({ dialect: 'mistrel', model: 'm' }, {})).toThrow(
    /"mistrel" is none of openai, deepseek,.* zhipu/,
  )
  expect(() => chooseModel({ dialect: 'toString', model: 'm', baseUrl }, {})).toThrow('is none of')
  expect(() => chooseModel({ dialect: 'vllm', model: 'm' }, {})).toThrow('--dialect vllm needs --base-url')
  expect(() => chooseModel({ dialect: 'mistral' }, {})).toThrow('--dialect mistral needs --model')
  expect(() => chooseModel({ dialect: 'mistral', model: 'demo' }, {})).toThrow('--dialect mistral needs --model')
  expect(() => chooseModel({ dialect: 'mistral', model: 'm', baseUrl: 'x' }, {})).toThrow('no http(s) URL')
  expect(chooseModel({ dialect: 'vllm', model: 'm', baseUrl }, {}).adapter.model).toBe('m')
})

test('the keys in the environment are those of known servers, each once, and no placeholders', () => {
  const env = { DEEPSEEK_API_KEY: 'sk-12345678', MISTRAL_API_KEY: 'sk-12345678', OPENAI_API_KEY: 'x', HOME: '/home/me' }
  expect(keysIn(env)).toEqual(['sk-12345678'])
  expect(keysIn({})).toEqual([])
})

test('a count is a number or nothing', () => {
  expect(positiveInteger('--max-steps', '12')).toBe(12)
  expect(positiveInteger('--max-steps', undefined)).toBeUndefined()
})

test('a word to copy is quoted where a shell would read it otherwise', () => {
  expect(['a/b.db', 'a b', "it's"].map(shellWord)).toEqual(['a/b.db', "'a b'", `'it'\\''s'`])
})
