/** The header the next request starts from: the last one logged, null before the first. */
import type { RequestHeader } from '../requests.ts'
import type { Projection } from './projection.ts'

export const requestHeader: Projection<RequestHeader | null> = {
  initial: null,
  evolve: (state, event) => (event.type === 'request/header' ? event.data.header : state),
}
