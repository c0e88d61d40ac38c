/** A tool of your own that somebody must allow, and what the model is told when they do. */
import { createAgent, tool } from 'pawl'
import { scripted, toolCall } from 'pawl/adapters'
import { memoryStore } from 'pawl/log'

const outbox: string[] = []
const sendMail = tool({
  name: 'send_mail',
  description: 'Sends a mail.',
  parameters: {
    type: 'object',
    properties: { to: { type: 'string' }, body: { type: 'string' } },
    required: ['to', 'body'],
    additionalProperties: false,
  },
  needsApproval: true,
  // A crash in the middle leaves it open whether the mail went out. Asking is safer than sending twice.
  onCrash: 'ask',
  execute: (args, { idempotencyKey }) => {
    outbox.push(`${idempotencyKey} ${JSON.stringify(args)}`)
    return 'sent'
  },
})

const agent = await createAgent({
  sessionId: 'mail',
  store: memoryStore(),
  model: scripted([
    toolCall('send_mail', { to: 'ada@example.org', body: 'The build is green.' }, { id: 'call-1' }),
    'Ada knows.',
  ]),
  tools: [sendMail],
})

const { turn } = agent.followup('Tell Ada that the build is green.')
await agent.whenQuiet() // nothing more happens until somebody answers: now, tomorrow, or from another process
for (const { callId, name, arguments: args, argumentsDigest } of agent.approvals()) {
  console.log(`${name} ${args}`)
  await agent.approve(callId, { digest: argumentsDigest, by: 'grace' }) // the digest: what was seen is what is allowed
}
const result = await turn
console.log(`${result?.reason.kind}: ${result?.text}`)
console.log(outbox.join('\n'))
await agent.close()
