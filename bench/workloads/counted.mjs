/** Nobody is fast by leaving something out. */
import { deepStrictEqual } from 'node:assert'

/**
 * Ends a conversation, having compared what came to pass with what had to.
 * @param {import('../harness/contender.mjs').Program} program
 * @param {import('../harness/contender.mjs').Chat} chat
 * @param {import('../harness/contender.mjs').Seen} wanted
 */
export async function endCounted(program, chat, wanted) {
  const logged = (await chat.logged?.()) ?? wanted.deltas
  await chat.close()
  deepStrictEqual({ ...program.seen(), logged }, { ...wanted, logged: wanted.deltas })
}
