/** Where the versions of the specification call the same thing by another shape. */
import type { Attached } from './images.ts'
import type { ExtraOf, FileOf, ImageOf, PlainOptions, TaggedFile, Version } from './model.ts'

/** A part that only some versions have. */
export type Extra =
  | { readonly type: 'custom'; readonly kind: `${string}.${string}` }
  | { readonly type: 'reasoning-file'; readonly data: TaggedFile; readonly mediaType: string }

/** How one version calls what every version has, and what it has none for. */
export interface Form<V extends Version> {
  file(data: TaggedFile): FileOf<V>
  /** An image in a tool's result; undefined if the version has no room for it. */
  image(image: Attached): ImageOf<V> | undefined
  /** Undefined if the version has no such part. */
  extra(part: Extra, options: { providerOptions?: PlainOptions }): ExtraOf<V> | undefined
}

const untagged = (file: TaggedFile): string | URL => (file.type === 'data' ? file.data : file.url)

export const v2: Form<'v2'> = {
  file: untagged,
  image: ({ data, mediaType }) => (data.type === 'data' ? { type: 'media', data: data.data, mediaType } : undefined),
  extra: () => undefined,
}

export const v3: Form<'v3'> = {
  file: untagged,
  image: ({ data, mediaType }) =>
    data.type === 'data'
      ? { type: 'image-data', data: data.data, mediaType }
      : { type: 'image-url', url: data.url.href },
  extra: () => undefined,
}

export const v4: Form<'v4'> = {
  file: (data) => data,
  image: ({ data, mediaType }) => ({ type: 'file', data, mediaType }),
  extra: (part, options) => ({ ...part, ...options }),
}
