/**
 * Images in messages, as models of the AI SDK take them: inline, or by a URL that the provider fetches. Nothing is
 * downloaded here: a URL that the model does not take is an image it does not take.
 */
import type { Json } from '../../../log/json.ts'
import type { ContentBlock, ImageBlock } from '../../../log/messages.ts'
import { isFields } from './json.ts'
import type { SupportedUrls, TaggedFile } from './model.ts'

/** A file that a message brings. */
export interface Attached {
  readonly data: TaggedFile
  readonly mediaType: string
}

/** What stands where an image cannot. */
export const IMAGE = '[image]'

/** True for an image. */
export const isImage = (block: ContentBlock): block is ImageBlock => block.type === 'image'

/**
 * The image of an attachment: a URL (http, https, or data with base64), `{ url, mediaType? }`, or base64 as
 * `{ data, mediaType }`. Undefined for any other, and for a URL that is not among `urls`.
 */
export function attachedOf(attachment: Json, urls: SupportedUrls): Attached | undefined {
  if (typeof attachment === 'string') return ofUrl(attachment, undefined, urls)
  if (!isFields(attachment)) return undefined
  const { data, url, mediaType } = attachment
  const stated = typeof mediaType === 'string' && mediaType !== '' ? mediaType : undefined
  if (typeof data === 'string')
    return stated === undefined ? undefined : { data: { type: 'data', data }, mediaType: stated }
  return typeof url === 'string' ? ofUrl(url, stated, urls) : undefined
}

function ofUrl(url: string, mediaType: string | undefined, urls: SupportedUrls): Attached | undefined {
  const inline = /^data:([^;,]+);base64,/i.exec(url)
  if (inline !== null) {
    return { data: { type: 'data', data: url.slice(inline[0].length) }, mediaType: mediaType ?? inline[1] ?? 'image/*' }
  }
  const type = mediaType ?? 'image/*'
  if (!/^https?:/i.test(url) || !URL.canParse(url) || !isFetched(url, type, urls)) return undefined
  return { data: { type: 'url', url: new URL(url) }, mediaType: type }
}

/** Patterns are searched with: one that is global would remember where it was. */
function isFetched(url: string, mediaType: string, urls: SupportedUrls): boolean {
  const type = mediaType.toLowerCase()
  return Object.entries(urls).some(
    ([of, patterns]) =>
      type.startsWith(of === '*' ? '' : of.toLowerCase().replace(/\*.*$/, '')) &&
      patterns.some((pattern) => url.toLowerCase().search(pattern) >= 0),
  )
}
