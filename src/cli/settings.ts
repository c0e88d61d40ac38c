/** What flags and environment mean: which store, which folder, which model. Wrong ones are told apart from each other. */
import { existsSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { STORE_TIMEOUT_MS } from '../log/patience.ts'
import type { LogStore } from '../log/store.ts'
import { sqliteStore } from '../log/stores/sqlite.ts'
import { timedStore } from '../log/stores/timed.ts'
import { DEFAULT_MODEL, deepseek } from '../services/adapters/deepseek.ts'
import { demo } from '../services/adapters/demo.ts'
import { serverOf, servers } from '../services/adapters/dialects.ts'
import { openaiCompatible } from '../services/adapters/openai-compatible.ts'
import type { ModelAdapter } from '../services/llm/adapter.ts'
import { usage } from './console.ts'

type Env = Readonly<Record<string, string | undefined>>

/** The user's state directory for Pawl, by the customs of the platform. */
export function stateDirectory(env: Env = process.env, platform: NodeJS.Platform = process.platform): string {
  if (platform === 'win32') return join(env.LOCALAPPDATA || join(homedir(), 'AppData', 'Local'), 'pawl')
  if (platform === 'darwin') return join(homedir(), 'Library', 'Application Support', 'pawl')
  // A relative XDG_STATE_HOME is to be ignored (XDG Base Directory Specification).
  const state = env.XDG_STATE_HOME?.startsWith('/') ? env.XDG_STATE_HOME : join(homedir(), '.local', 'state')
  return join(state, 'pawl')
}

/** The store's file: the flag, else PAWL_STORE, else `pawl.db` in the state directory. */
export function storePath(flag: string | undefined, env: Env = process.env): string {
  return resolve(flag ?? (env.PAWL_STORE || join(stateDirectory(env), 'pawl.db')))
}

/** The store in a file, made if it is not there. A disk that never answers holds no command for ever. */
export const openStore = (path: string): LogStore =>
  timedStore(sqliteStore(path), {
    timeoutMs: STORE_TIMEOUT_MS,
    wayOut: `see whether the disk of ${path} answers, then try again`,
  })

/** The store of commands that only read or answer: a missing file is an error, not a new store. */
export function openExistingStore(path: string): LogStore {
  if (!existsSync(path)) throw usage(`no store at ${path}: run something first, or name one with --store`)
  return openStore(path)
}

/** The flag that names the store in a command to copy, empty for the default one. */
export const storeFlag = (path: string): string => (path === storePath(undefined) ? '' : ` --store ${shellWord(path)}`)

/** A word a POSIX shell reads as itself. */
export const shellWord = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`

/** The folder the file tools may see. */
export function rootDirectory(flag: string | undefined): string {
  const root = resolve(flag ?? process.cwd())
  if (!existsSync(root)) throw usage(`no folder ${root}`)
  if (!statSync(root).isDirectory()) throw usage(`${root} is not a folder`)
  return root
}

export interface ModelFlags {
  readonly model?: string | undefined
  readonly baseUrl?: string | undefined
  readonly dialect?: string | undefined
}

interface Chosen {
  readonly adapter: ModelAdapter
  /** No model was named, and there is neither a key nor a server for one. */
  readonly defaulted: boolean
}

/**
 * The model asked for. A dialect names a known server: its address, unless there is another, and its key. Without one,
 * models called deepseek-* take the key of DEEPSEEK_API_KEY, others of a server OPENAI_API_KEY, if any.
 */
export function chooseModel(flags: ModelFlags, env: Env = process.env): Chosen {
  const baseURL = flags.baseUrl === undefined ? undefined : httpUrl(flags.baseUrl)
  if (flags.dialect !== undefined)
    return { adapter: modelOf(flags.dialect, { ...flags, baseURL }, env), defaulted: false }
  const key = env.DEEPSEEK_API_KEY || undefined
  const model = flags.model ?? (baseURL !== undefined || key !== undefined ? DEFAULT_MODEL : 'demo')
  if (model.trim() === '') throw usage('--model needs a name')
  if (model === 'demo') {
    if (baseURL !== undefined) throw usage('--base-url names a server, and the demo model has none')
    return { adapter: demo(), defaulted: flags.model === undefined }
  }
  if (baseURL === undefined) return { adapter: deepseek({ model, ...(key && { apiKey: key }) }), defaulted: false }
  if (/^deepseek/i.test(model)) {
    // A server of one's own often wants no key; the adapter always sends one.
    return { adapter: deepseek({ model, baseURL, apiKey: key ?? 'none' }), defaulted: false }
  }
  const apiKey = env.OPENAI_API_KEY
  return { adapter: openaiCompatible({ model, baseURL, ...(apiKey && { apiKey }) }), defaulted: false }
}

function modelOf(
  name: string,
  { model = '', baseURL }: { readonly model?: string | undefined; readonly baseURL: string | undefined },
  env: Env,
): ModelAdapter {
  const server = serverOf(name)
  if (server === undefined) throw usage(`--dialect "${name}" is none of ${Object.keys(servers).join(', ')}`)
  const base = baseURL ?? server.baseURL
  if (base === undefined) throw usage(`--dialect ${name} needs --base-url: where such a server is, nobody can know`)
  if (model.trim() === '' || model === 'demo') throw usage(`--dialect ${name} needs --model: one that its server has`)
  const apiKey = server.key === undefined ? undefined : env[server.key]
  return openaiCompatible({ model, baseURL: base, dialect: server.dialect, ...(apiKey && { apiKey }) })
}

/** Shorter ones are placeholders for servers that ask for no key, and words of ordinary text. */
const KEY_LENGTH = 8

/** The keys in the environment, which no log may hold. */
export function keysIn(env: Env = process.env): readonly string[] {
  const names = Object.keys(servers).map((name) => serverOf(name)?.key ?? '')
  const keys = names.map((name) => env[name] ?? '').filter(({ length }) => length >= KEY_LENGTH)
  return [...new Set(keys)]
}

function httpUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') throw usage(`--base-url "${text}" is no http(s) URL`)
  return text
}

/** A count given as a flag. */
export function positiveInteger(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const value = Number(text)
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value < 1)
    throw usage(`${flag} "${text}" is no whole number from 1`)
  return value
}

/** A session's name, as given. */
export function sessionName(text: string): string {
  if (text.trim() === '' || text.length > 200 || /\p{Cc}/u.test(text)) {
    throw usage('a session is named by 1 to 200 printable characters')
  }
  return text
}
