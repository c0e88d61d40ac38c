/**
 * An agent in a process of its own on a SQLite file: `node agent-child.mjs TASK FILE [FOLDER]`. It tells its parent over
 * IPC what happened, and runs what was built, since Node 20 runs no TypeScript.
 */
import { hangs, scripted, text, toolCall } from '../../dist/adapters.js'
import { createAgent, tool } from '../../dist/index.js'
import { createStore } from '../../dist/log/stores/sqlite/store.js'

const [task, file, folder] = process.argv.slice(2)
const tell = (fact) => process.send?.(fact)
/** Until it is killed. */
const stay = () => process.on('message', () => {})

const pay = tool({
  name: 'pay',
  description: 'Pays',
  parameters: { type: 'object' },
  needsApproval: true,
  execute() {
    tell({ paid: true })
    return 'paid'
  },
})
/** At work until its turn is cancelled. */
const dig = tool({
  name: 'dig',
  description: 'Digs',
  parameters: { type: 'object' },
  execute(_, { signal }) {
    tell({ digging: true })
    return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  },
})

const open = (model, options = {}) =>
  createAgent({
    sessionId: 's',
    store: createStore(file, { busyTimeoutMs: 20_000 }),
    model: scripted(model),
    tools: [pay, dig],
    ...options,
  })

const tasks = {
  /** Asks for an approval, and waits for it. */
  async ask() {
    stay()
    const agent = await open([toolCall('pay', { amount: 5 }, { id: 'c1' }), 'Paid.'])
    agent.followup('pay')
    await agent.whenQuiet()
    tell({ asked: agent.approvals()[0].argumentsDigest })
    await agent.whenIdle()
    tell({ idle: agent.session.head })
  },
  /** Opens what is there, and closes it once nothing more happens. */
  async finish() {
    const agent = await open(['Carried on.'])
    await agent.whenIdle()
    await agent.close()
    tell({ idle: agent.session.head })
    process.disconnect()
  },
  /** Is at work in a tool. */
  async dig() {
    stay()
    const agent = await open([toolCall('dig', {}, { id: 'c1' })])
    const { reason } = await agent.run('dig')
    tell({ ended: reason, at: Date.now() })
  },
  /** Fills a disk that has no room, and looks at none of its promises. */
  async fill() {
    const store = createStore(file, { busyTimeoutMs: 20_000, pragmas: ['max_page_count = 60'] })
    const long = Array.from({ length: 40 }, (_, i) => text(`${i} ${'x'.repeat(20_000)}`))
    const agent = await open([[...long, hangs()]], { store, ...(folder ? { fallbackDir: folder } : {}) })
    agent.followup('go')
    agent.steer('and this')
    agent.cancel({ kind: 'user' }, { keepInbox: true }).catch(() => {})
    agent.followup('go on')
    agent.on('agent/status', (status) => {
      if (status !== 'failed') return
      setTimeout(async () => {
        await agent.close().catch(() => {})
        tell({ failed: true })
        process.disconnect()
      }, 200)
    })
  },
}

await tasks[task]()
