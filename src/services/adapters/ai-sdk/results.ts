/** A tool's result as a model of the AI SDK takes it. */
import type { ContentBlock, ToolResultBlock } from '../../../log/messages.ts'
import type { Form } from './forms.ts'
import { attachedOf, IMAGE, isImage } from './images.ts'
import type { ImageOf, OutputOf, ResultPart, SupportedUrls, Version } from './model.ts'

/** What a result is written with. */
export interface Answering<V extends Version> {
  readonly form: Form<V>
  readonly urls: SupportedUrls
  /** By id: the result's name, and what goes back to the provider with it. */
  readonly calls: ReadonlyMap<string, Pick<ResultPart<V>, 'toolName' | 'providerOptions'>>
}

/** True for a tool's result. */
export const isResult = (block: ContentBlock): block is ToolResultBlock => block.type === 'tool-result'

/** One result. It is text, unless it shows an image that the model takes; an error is always text. */
export function resultPart<V extends Version>(block: ToolResultBlock, answering: Answering<V>): ResultPart<V> {
  const { toolCallId, content, isError } = block
  const images = isError ? [] : content.map((item) => imageIn(item, answering))
  return {
    type: 'tool-result',
    toolCallId,
    ...(answering.calls.get(toolCallId) ?? { toolName: 'unknown' }),
    output: images.some((image) => image !== undefined) ? shown(content, images) : said(block),
  }
}

const NO_OUTPUT = '(no output)'

const said = <V extends Version>({ content, isError }: ToolResultBlock): OutputOf<V> => ({
  type: isError ? 'error-text' : 'text',
  value: content.map(wordsOf).join('') || NO_OUTPUT,
})

const shown = <V extends Version>(
  content: readonly ContentBlock[],
  images: readonly (ImageOf<V> | undefined)[],
): OutputOf<V> => ({
  type: 'content',
  value: content.flatMap((block, place) => {
    const text = wordsOf(block)
    return images[place] ?? (text === '' ? [] : { type: 'text' as const, text })
  }),
})

function imageIn<V extends Version>(block: ContentBlock, { form, urls }: Answering<V>): ImageOf<V> | undefined {
  const attached = isImage(block) ? attachedOf(block.attachment, urls) : undefined
  return attached && form.image(attached)
}

const wordsOf = (block: ContentBlock): string => (block.type === 'text' ? block.text : isImage(block) ? IMAGE : '')
