/** Content that comes as a list of parts instead of a string, as some models that think send it. */
import { objectIn, textIn } from './wire-json.ts'

/** What is said in `content`: the string, or the texts of its parts. */
export const wordsIn = (content: unknown): string =>
  typeof content === 'string' ? content : textsIn(content, (type) => type === 'text' || type === 'refusal')

/** What is thought in `content`: a string thinks nothing. A part has its thoughts as a string or as parts again. */
export const thoughtIn = (content: unknown): string =>
  Array.isArray(content)
    ? content
        .map(objectIn)
        .filter(({ type }) => type === 'thinking')
        .map(({ thinking }) => textIn(thinking) || textsIn(thinking, () => true))
        .join('')
    : ''

const textsIn = (parts: unknown, are: (type: unknown) => boolean): string =>
  Array.isArray(parts)
    ? parts
        .map(objectIn)
        .filter(({ type }) => are(type))
        .map(({ text, refusal }) => textIn(text) || textIn(refusal))
        .join('')
    : ''
