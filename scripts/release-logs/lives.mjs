/** Which lives go into which file. A file's lives follow each other, each act of them in a process of its own. */
import { cancels } from './lives/cancels.mjs'
import { conversations } from './lives/conversations.mjs'
import { crashes } from './lives/crashes.mjs'
import { endings } from './lives/endings.mjs'
import { forks } from './lives/forks.mjs'
import { inboxes } from './lives/inboxes.mjs'
import { killed } from './lives/killed.mjs'
import { suspensions } from './lives/suspensions.mjs'

/** @type {Readonly<Record<string, readonly import('./life.mjs').Life[]>>} */
export const FILES = { endings, crashes, cancels, suspensions, conversations, inboxes, forks, killed }
