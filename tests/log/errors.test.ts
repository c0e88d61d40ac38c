import { expect, test } from 'vitest'
import * as errors from '../../src/log/errors.ts'

const cause = new Error('why')

/** What each error says of what happened, and of the way out; and its facts. */
test.each<[errors.PawlError, string, string, readonly string[], object]>([
  [
    new errors.SessionBusy('s1', 'process 7'),
    'SessionBusy',
    'SESSION_BUSY',
    ['"s1" is in use by process 7', 'steal: true'],
    { sessionId: 's1', owner: 'process 7' },
  ],
  [new errors.Fenced(3), 'Fenced', 'FENCED', ['Epoch 3', 'open it again'], { epoch: 3 }],
  [new errors.Fenced(3, 'It was released'), 'Fenced', 'FENCED', ['It was released'], { epoch: 3 }],
  [
    new errors.SeqConflict(4, 6),
    'SeqConflict',
    'SEQ_CONFLICT',
    ['head at 4 but it is at 6', 'reopen the session'],
    { expected: 4, actual: 6 },
  ],
  [
    new errors.SessionNotFound('s1'),
    'SessionNotFound',
    'SESSION_NOT_FOUND',
    ['"s1"', 'pass `create`'],
    { sessionId: 's1' },
  ],
  [
    new errors.StoreFailure('full', 'The disk is full', { cause }),
    'StoreFailure',
    'STORE_FAILURE',
    ['The disk is full'],
    { reason: 'full', cause },
  ],
  [
    new errors.LogTooNew({ type: 'turn/pause' }),
    'LogTooNew',
    'LOG_TOO_NEW',
    ['event type "turn/pause"', 'use a newer Pawl'],
    { type: 'turn/pause', format: undefined },
  ],
  [
    new errors.LogTooNew({ format: 2 }),
    'LogTooNew',
    'LOG_TOO_NEW',
    ['log format 2', 'use a newer Pawl'],
    { type: undefined, format: 2 },
  ],
  [new errors.ForkRefused('Not here', 'INVALID_BOUNDARY'), 'ForkRefused', 'INVALID_BOUNDARY', ['Not here'], {}],
  [new errors.NotJson('$.a', 'a cycle'), 'NotJson', 'NOT_JSON', ['at $.a', 'a cycle'], { path: '$.a' }],
  [new errors.InvalidEvent('No turn'), 'InvalidEvent', 'INVALID_EVENT', ['No turn'], {}],
  [
    new errors.InvalidLog(7, 'DATA', 'no turn'),
    'InvalidLog',
    'INVALID_LOG',
    ['seq 7', 'DATA', 'no turn'],
    { seq: 7, rule: 'DATA' },
  ],
  [
    new errors.TooLarge('turn/end event', 9, 8),
    'TooLarge',
    'TOO_LARGE',
    ['turn/end event is 9 bytes', 'the 8 the log takes', 'shorten it'],
    { bytes: 9, max: 8 },
  ],
])('%s', (error, name, code, words, facts) => {
  expect(error).toBeInstanceOf(errors.PawlError)
  expect(error).toMatchObject({ name, code, ...facts })
  for (const word of words) expect(error.message).toContain(word)
})
