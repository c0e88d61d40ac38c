import { createAgent, workspaceTools } from 'pawl'
import { deepseek, demo } from 'pawl/adapters'
import { sqliteStore } from 'pawl/log'

const agent = await createAgent({
  model: process.env.DEEPSEEK_API_KEY ? deepseek({ model: 'deepseek-flash' }) : demo(),
  store: sqliteStore('agent.db'),
  sessionId: 'first', // the same id again: the conversation goes on, also after a crash
  tools: workspaceTools({ root: '.' }),
})
const { reason, text } = await agent.run('What is this project?')
console.log(reason.kind, text)
await agent.close()
