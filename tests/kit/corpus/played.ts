/** What playing one corpus file came to. */

/** `splits`: ways in which its bytes were cut; `http`: whether it went over a socket as well. */
export interface Played {
  readonly splits: number
  readonly http: boolean
}

/** Thrown when what came is not what the file expects. */
export class Mismatch extends Error {}
