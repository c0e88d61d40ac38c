import { expect, test } from 'vitest'
import { errorLine, exitCodeOfError, usage } from '../../src/cli/console.ts'
import { Fenced, SessionNotFound, StoreFailure } from '../../src/log/errors.ts'
import { AgentClosed } from '../../src/services/errors.ts'

test('an error is one line, for people with its code at the end', () => {
  expect(errorLine(usage('no\nfolder'), false)).toBe('error: no folder')
  expect(errorLine(new Fenced(3, 'gone'), false)).toBe('error: gone (FENCED)')
  expect(errorLine('thrown text', false)).toBe('error: thrown text (UNKNOWN)')
})

test('an error is one line of JSON for machines', () => {
  expect(JSON.parse(errorLine(new StoreFailure('full', 'disk\nfull'), true))).toEqual({
    error: { code: 'STORE_FAILURE', message: 'disk full' },
  })
  expect(JSON.parse(errorLine(Object.assign(new Error('no'), { code: 'EACCES' }), true))).toEqual({
    error: { code: 'EACCES', message: 'no' },
  })
})

test('a store that failed exits 2, also behind another error; the rest exits 1', () => {
  expect(exitCodeOfError(new StoreFailure('io', 'x'))).toBe(2)
  expect(exitCodeOfError(new AgentClosed('s', { cause: new Fenced(1) }))).toBe(2)
  expect(exitCodeOfError(new AgentClosed('s'))).toBe(1)
  expect(exitCodeOfError(new SessionNotFound('s'))).toBe(1)
  expect(exitCodeOfError(undefined)).toBe(1)
})
