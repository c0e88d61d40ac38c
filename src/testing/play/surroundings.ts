/**
 * What an agent asks of its surroundings, held until the path answers. A question lives as long as the actor of the
 * chart that asked it: the others are left behind, and nobody waits for their answers any more.
 */
import type { PathInput } from '../path-input.ts'

type Type = PathInput['type']
type Of<T extends Type> = Extract<PathInput, { readonly type: T }>

/** An answer of the path, and how whoever was asked tells what became of it: the same, unless somebody else decided. */
export interface Told<T extends Type> {
  readonly input: Of<T>
  observed(...inputs: readonly PathInput[]): void
}

interface Question {
  readonly name: string
  /** The actor of the chart that asked. */
  readonly actor: unknown
  answer(input: PathInput, observed: (inputs: readonly PathInput[]) => void): void
}

export interface SurroundingsOptions {
  /** The actors of the chart that live, by id. */
  actors(): Readonly<Record<string, unknown>>
  /** Told of whatever happens. */
  changed(): void
  /** Names of bodies that ran, in this process or one before: none runs twice. */
  readonly ran: Set<string>
}

export class Surroundings {
  /** What must not have been asked: by no actor that lives, or a second time. */
  readonly faults: string[] = []
  /** What `tools/post-execute` is to decide of a call whose body has settled, where that is not to go on as usual. */
  readonly judgements = new Map<string, 'block' | 'fail'>()
  /** Users' own code that was let run and has not ended. */
  running = 0
  readonly #options: SurroundingsOptions
  readonly #open: Question[] = []
  readonly #asked = new Set<string>()

  constructor(options: SurroundingsOptions) {
    this.#options = options
  }

  /** Asks on behalf of the actor of that id; `again` for a question that may be asked once it was answered. */
  ask<T extends Type>(name: string, actorId: string, types: readonly T[], again = false): Promise<Told<T>> {
    const actor = this.#options.actors()[actorId]
    if (actor === undefined) this.faults.push(`${name}: asked, though no actor "${actorId}" lives`)
    this.#note(name, again)
    return new Promise((resolve, reject) => {
      this.#open.push({
        name,
        actor,
        answer: (input, observed) => {
          if (isOneOf(input, types)) resolve({ input, observed: (...inputs) => observed(inputs) })
          else reject(new Error(`${JSON.stringify(input)} is no answer to ${name}`))
        },
      })
      this.#options.changed()
    })
  }

  #note(name: string, again: boolean): void {
    const known = name.startsWith('body ') ? this.#options.ran : this.#asked
    if (known.has(name) && !again) this.faults.push(`${name}: asked a second time`)
    known.add(name)
  }

  /** Resolves with what really happened. @throws if nobody asks that. */
  answer(name: string, input: PathInput): Promise<readonly PathInput[]> {
    const question = this.#open.find((one) => one.name === name && this.#lives(one))
    if (question === undefined) throw new Error(`Nothing waits for an answer to ${name}`)
    return this.#tell(question, input)
  }

  #tell(question: Question, input: PathInput): Promise<readonly PathInput[]> {
    this.#open.splice(this.#open.indexOf(question), 1)
    return new Promise((resolve) => {
      question.answer(input, resolve)
    })
  }

  /** Whoever asked wants to know no more. */
  withdraw(name: string): void {
    const at = this.#open.findIndex((one) => one.name === name)
    if (at >= 0) this.#open.splice(at, 1)
    this.#options.changed()
  }

  /** Names of the questions that wait for an answer. */
  waiting(): readonly string[] {
    return this.#open.filter((one) => this.#lives(one)).map(({ name }) => name)
  }

  /** Answers what was left behind, as `answerOf` says; what that does must be nothing. */
  answerLate(answerOf: (name: string) => PathInput | undefined): number {
    const left = this.#open.filter((one) => !this.#lives(one))
    let answered = 0
    for (const question of left) {
      const input = answerOf(question.name)
      if (input === undefined) continue
      void this.#tell(question, input)
      answered += 1
    }
    return answered
  }

  /** Lets a user's own code run, and is quiet only when it has ended. */
  async run<T>(code: () => T | Promise<T>): Promise<T> {
    this.running += 1
    try {
      return await code()
    } finally {
      this.running -= 1
      this.#options.changed()
    }
  }

  #lives({ actor }: Question): boolean {
    return actor !== undefined && Object.values(this.#options.actors()).includes(actor)
  }
}

const isOneOf = <T extends Type>(input: PathInput, types: readonly T[]): input is Of<T> =>
  types.some((type) => type === input.type)
