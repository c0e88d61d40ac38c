/** What a log can hold: tools of every kind, retries, odd values, plug-ins' notes, summaries, changed requests. */
import {
  chunks,
  fails,
  finish,
  gate,
  pause,
  reasoning,
  scripted,
  text,
  toolCall,
  usage,
} from '../../../dist/adapters.js'
import { PawlError } from '../../../dist/index.js'
import { quick } from '../bodies.mjs'
import { atRest, completed, each, left, named } from '../life.mjs'
import { answer, asked, moment, says, settle } from '../stage.mjs'

const call = (/** @type {string} */ name, /** @type {string} */ id, args = { of: id }) => toolCall(name, args, { id })

/** Text as people, editors and broken programs write it. */
const ODD = [
  'Grüße aus Köln, Ἑλλάς, Москва, 東京, שלום, हिन्दी',
  '🦀👩‍👩‍👧‍👦 e\u0301 \u202eright to left\u202c',
  'lines\nfeeds\r\nand\tcontrols \u0000\u0001\u001f\u007f\u0085 \u2028\u2029',
  'lone surrogates \ud83d and \udc00',
  '"quotes" \\backslashes\\ </script> {{braces}} `ticks`',
  '',
]

const odd = JSON.parse(
  '{"":"an empty key","__proto__":{"kept":true},"constructor":"own","a.b":[[],{},null,true,false],' +
    '"numbers":[0,-1,1.5,1e21,1e-7,5e-324,1.7976931348623157e308,9007199254740991,-9007199254740991,0.1,123456789.123456789]}',
)

/** Lines of a tool that has much to say. */
const long = Array.from({ length: 250 }, (_, i) => `${String(i + 1).padStart(4)}  drwxr-xr-x  src/module-${i % 40}.ts`)

export const conversations = each({
  'tools-side-by-side-and-alone': atRest(
    'calls side by side up to a cap, one alone between them, their results out of order',
    async ({ open }) => {
      /** @type {Record<string, () => void>} */
      const end = {}
      const slow = quick('slow', {
        execute: (_, { callId }) =>
          new Promise((resolve) => {
            end[callId] = () => resolve(`slow ${callId}`)
          }),
      })
      const alone = quick('alone', { mode: 'exclusive' })
      const said = ['slow', 'slow', 'slow', 'alone', 'slow'].map((name, i) => call(name, `c${i + 1}`))
      const agent = await open({ model: says([said]), tools: [slow, alone], maxParallelToolCalls: 2 })
      const running = agent.run('go')
      for (const id of ['c2', 'c1', 'c3', 'c5']) {
        while (end[id] === undefined) await settle(1)
        // The next one begins only when this one's result is in.
        await agent.session.flush()
        end[id]?.()
        await settle()
      }
      await running
      await agent.close()
    },
  ),

  'tools-that-fail': atRest('every way a call can fail: none ends the turn', async ({ open, clock }) => {
    const begun = moment()
    const held = gate()
    /** @type {(said: string) => void} */
    let end = () => {}
    const tools = [
      quick('throws', {
        execute: () => {
          throw new PawlError('the shelf is empty', 'SHELF_EMPTY')
        },
      }),
      quick('strict', {
        parameters: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] },
        output: { type: 'object' },
        execute: () => 'no object',
      }),
      quick('slow', {
        timeoutMs: 5_000,
        execute: () =>
          new Promise((resolve) => {
            end = resolve
            begun.hit()
          }),
      }),
      quick('fine'),
    ]
    const agent = await open({
      model: says([
        [call('missing', 'c1'), toolCall('throws', '{"not json', { id: 'c2' }), call('throws', 'c3')],
        [
          toolCall('strict', { n: 'one' }, { id: 'c4' }),
          toolCall('strict', { n: 1 }, { id: 'c5' }),
          call('fine', 'c6'),
          call('fine', 'c7'),
        ],
        [call('slow', 'c8'), toolCall('fine', { n: 1 }, { id: 'c6' })],
        [text('It did not '), pause(held), text('end in time.')],
      ]),
      tools,
      hooks: {
        'tools/pre-execute': ({ callId }, next) =>
          callId === 'c6' ? { kind: 'deny', reason: 'not this one' } : next(),
        'tools/post-execute': ({ callId }, next) =>
          callId === 'c7' ? { kind: 'block', feedback: 'better not', contexts: ['Ask for something else.'] } : next(),
      },
    })
    const running = agent.run('go')
    await begun.reached
    await settle()
    clock.pass(5_000)
    await held.reached
    end('at last')
    await settle()
    held.release()
    await running
    await agent.close()
  }),

  'tools-that-say-more': atRest(
    'results with what belongs beside them: meta, contexts, steers, a value put in place',
    async ({ open }) => {
      const speaker = quick('says', {
        mode: 'exclusive',
        meta: (_, value) => ({ seen: value === undefined ? null : /** @type {string} */ (value), at: [1, 2.5] }),
        execute(_, context) {
          context.progress('not kept')
          context.addContext('A note of the tool.')
          context.inject('injected by the tool')
          context.steer('steered by the tool')
          return { idempotencyKey: context.idempotencyKey, run: context.run }
        },
      })
      const agent = await open({
        model: says([[call('says', 'c1'), call('plain', 'c2'), call('plain', 'c3')]]),
        tools: [speaker, quick('plain', { execute: () => undefined })],
        hooks: {
          'tools/post-execute': ({ callId }, next) =>
            callId === 'c2' ? { kind: 'accept', value: { replaced: true }, contexts: ['A note of the hook.'] } : next(),
          'tools/execute': ({ callId }, next) => (callId === 'c3' ? { kind: 'ok', value: 3, content: [] } : next()),
        },
      })
      await agent.run('go')
      await agent.close()
    },
  ),

  'approvals-answered-in-every-way': atRest(
    'approvals given, denied with and without a reason, expired, and asked for by a policy',
    async ({ open, clock }) => {
      const soon = quick('soon', { needsApproval: true, approvalExpiresMs: 60_000 })
      const agent = await open({
        model: says([['pay', 'pay', 'pay', 'soon', 'look'].map((name, i) => call(name, `c${i + 1}`))]),
        tools: [quick('pay', { needsApproval: true }), soon, quick('look')],
        hooks: {
          'tools/pre-execute': ({ name }, next) => (name === 'look' ? { kind: 'ask', reason: 'it looks far' } : next()),
        },
      })
      const running = agent.run('go')
      await asked(agent, 5)
      await answer(agent, 'c2', 'deny', { by: 'the boss', reason: 'too dear' })
      await answer(agent, 'c1', 'approve', { by: 'the boss' })
      await answer(agent, 'c3', 'deny')
      await answer(agent, 'c5', 'approve')
      await settle()
      clock.pass(60_000)
      await running
      await agent.close()
    },
  ),

  retries: atRest(
    'attempts that failed and were tried again: by policy, always, by a hook, and in vain',
    async ({ open, clock }) => {
      const failures = ['SERVER', 'SERVER', 'SERVER']
      const others = scripted([fails({ code: 'QUOTA', message: 'spent' }), 'At last.'], {
        model: 'patient',
        retry: { mode: 'always', backoff: { initialDelayMs: 250, maxDelayMs: 60_000, jitterRatio: 0.25 } },
      })
      const model = says([
        [text('Ha'), fails('TRANSPORT')],
        fails({ code: 'RATE_LIMIT', status: 429, providerRetryAfterMs: 1_500 }),
        'Whole.',
        fails('CONTEXT_WINDOW_EXCEEDED'),
        'Shorter.',
        ...failures.map((code) => fails(code)),
        fails({ code: 'RATE_LIMIT', providerRetryAfterMs: 86_400_000 }),
      ])
      const agent = await open({
        model,
        models: [others],
        hooks: {
          'agent/request-error': ({ failure }, next) =>
            failure.code === 'CONTEXT_WINDOW_EXCEEDED' ? { kind: 'retry' } : next(),
          'agent/request': async ({ turn }, next) => ({
            ...(await next()),
            model: turn === 5 ? 'patient' : 'scripted',
          }),
        },
      })
      for (const message of ['by policy', 'by a hook', 'in vain', 'too long to wait', 'always']) {
        const running = agent.run(message)
        await agent.whenQuiet()
        while (agent.status === 'waiting') {
          await settle()
          clock.pass(60_000)
          await settle()
          await agent.whenQuiet()
        }
        await running
      }
      await agent.close()
    },
  ),

  'answers-that-are-none': atRest(
    'streams that ended as they should not: empty, without a finish, stopped by the provider',
    async ({ open }) => {
      const failure = { code: 'CONTENT_FILTER', message: 'stopped' }
      const agent = await open({
        model: says([
          [],
          [
            chunks([
              { type: 'block-start', index: 0, blockType: 'text' },
              { type: 'text-delta', index: 0, text: 'And then' },
            ]),
          ],
          [text('So f'), finish({ kind: 'aborted', failure })],
        ]),
        retry: { maxRetries: 0 },
      })
      for (const message of ['one', 'two', 'three']) await agent.run(message)
      await agent.close()
    },
  ),

  'hooks-that-fail': atRest(
    'a hook of each kind that threw or answered nonsense, and what that led to',
    async ({ open }) => {
      const agent = await open({
        model: scripted((_, n) => (n % 2 === 0 ? [call('look', `c${n}`)] : 'Done.')),
        tools: [quick('look')],
      })
      /** @type {readonly (keyof import('../../../dist/index.js').Hooks)[]} */
      const hooks = [
        'system-prompt/assemble',
        'agent/pre-step',
        'agent/request',
        'llm/stream',
        'tools/pre-execute',
        'tools/execute',
        'tools/post-execute',
        'agent/turn-stopping',
      ]
      for (const hook of hooks) {
        const dispose = agent.on(hook, () => {
          throw new RangeError(`${hook} is down`)
        })
        await agent.run(`with ${hook} down`)
        dispose()
      }
      const dispose = agent.on('agent/pre-step', () => /** @type {never} */ ({ kind: 'nonsense' }))
      await agent.run('with nonsense')
      dispose()
      await agent.close()
    },
  ),

  'odd-values': named(
    'Gespräch №1 / „odd“ 🦀',
    'text of many scripts, broken text, odd numbers and keys, blocks of types nobody knows',
    async ({ open }) => {
      const image = {
        type: /** @type {const} */ ('image'),
        attachment: { kind: 'url', url: 'https://example.test/ä.png?x=1&y=%20' },
      }
      const opaque = { type: /** @type {const} */ ('vendor/citation'), odd, none: null }
      const replayState = { response: { id: 'resp_1', odd }, blocks: [null, { signature: 'Zm9v' }] }
      const echo = quick('echo', { execute: (args) => args, meta: () => odd })
      const model = says([
        [
          ...ODD.map((line) => text(line, { deltas: 2 })),
          reasoning(ODD.join('|')),
          toolCall('echo', JSON.stringify({ odd, lines: ODD }), { id: 'ç 1/🦀' }),
          toolCall('echo', ' { "spaced" : [ 1.0 , 1e2, 12345678901234567890 ] } ', { id: 'c2' }),
          chunks([{ type: 'finish', reason: { kind: 'tool-calls' }, replayState }]),
        ],
        [text(ODD.join('\n'), { deltas: 7 }), usage({ inputTokens: 9_007_199_254_740_991, outputTokens: 0 })],
      ])
      const agent = await open({
        model,
        tools: [echo],
        system: ODD.slice(0, 2).join('\n'),
        secrets: ['hunter2-hunter2'],
      })
      await agent.run([...ODD.map((line) => ({ type: /** @type {const} */ ('text'), text: line })), image, opaque])
      await agent.run('my password is hunter2-hunter2')
      await agent.close()
    },
  ),

  'long-answers-and-results': atRest('hundreds of deltas, and results of thousands of characters', async ({ open }) => {
    const words = Array.from({ length: 120 }, (_, i) => `word ${i}${i % 12 === 11 ? '.\n' : ' '}`).join('')
    const agent = await open({
      model: says([
        [reasoning('A long list, then.'), text(words, { deltas: 120 }), call('list', 'c1')],
        [text('That was long.', { deltas: 5 })],
      ]),
      tools: [quick('list', { execute: () => long.join('\n') })],
    })
    await agent.run('list all')
    await agent.close()
  }),

  'notes-of-plug-ins': atRest(
    'events of plug-ins, at rest and in an open turn: whoever does not know them goes on',
    async ({ open }) => {
      const agent = await open({
        model: says([[call('note', 'c1')], 'Noted.']),
        tools: [quick('note', { execute: () => void agent.session.note('clerk/note', { odd, in: 'a body' }) })],
      })
      agent.session.note('clerk/opened', null)
      await agent.run('note it')
      agent.session.note('a/b/c', ['anything', { at: 'all' }])
      await agent.close()
    },
  ),

  summaries: atRest(
    'the conversation’s beginning replaced by a summary, and that by another',
    async ({ open, store, session }) => {
      const agent = await open({ context: [{ name: 'place', text: 'In the office.' }] })
      const replace = async (/** @type {string} */ message) => {
        await agent.session.flush()
        const shown = await shownSeqs(store, session)
        agent.session.replace({ start: shown[0] ?? 0, end: shown.at(-1) ?? 0, message })
      }
      await agent.run('first')
      await agent.run('second')
      await replace('They said one and two.')
      await agent.run('third')
      await replace('They said one, two and three.')
      await agent.run('fourth')
      await agent.close()
    },
  ),

  'changed-requests': atRest(
    'another model, other settings, other tools, another process: the header says each',
    async ({ open }) => {
      const agent = await open({
        model: scripted(() => 'By the first.', { contextWindow: 8_000 }),
        models: [scripted(() => 'By the other.', { provider: 'elsewhere', model: 'other', contextWindow: 1_000_000 })],
        hooks: {
          'agent/request': async ({ turn }, next) =>
            turn === 1
              ? next()
              : {
                  ...(await next()),
                  provider: 'elsewhere',
                  model: 'other',
                  temperature: 0.7,
                  stop: ['\n\n', 'END'],
                  maxTokens: 100,
                },
        },
      })
      await agent.run('one')
      await agent.run('two')
      await agent.close()
    },
    async ({ open }) => {
      const agent = await open({ system: 'Now with a system text.', tools: [quick('look')] })
      await agent.run('three')
      await agent.close()
    },
  ),

  empty: atRest('a session that was opened, and in which nothing happened', async ({ open }) => {
    const agent = await open()
    await agent.close()
  }),

  'only-a-note': {
    left: left('a session that was only told something, which waits', 'idle', { wake: true, turns: [completed()] }),
    acts: [
      async ({ open }) => {
        const agent = await open()
        agent.inject('for the first turn')
        await agent.close()
      },
    ],
  },
})

/**
 * Where the conversation stands that a summary is to replace, its newest message left out.
 * @param {import('../../../dist/log.js').LogStore} store @param {string} session
 */
async function shownSeqs(store, session) {
  /** @type {number[]} */
  const shown = []
  for await (const { seq, surfaceOp: op } of store.read(session)) {
    if (typeof op === 'object') {
      const from = shown.indexOf(op.start)
      shown.splice(from, shown.indexOf(op.end) - from + 1, seq)
    } else if (op === 'append') shown.push(seq)
  }
  return shown.slice(0, -1)
}
