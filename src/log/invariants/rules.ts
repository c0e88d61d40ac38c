/** What every log holds, by stable names. Structure first: after a breach of it nothing else is looked at. */
export const RULES = {
  'SEQ-CONTIGUOUS': 'seq counts from 0 without gaps',
  'TIME-MONOTONE': 'time never goes back',
  ENVELOPE: 'an event has the keys its type may have, and no others',
  DATA: 'an event’s data has the shape of its type',
  'UNKNOWN-TYPE': 'a type this version does not know is ignorable',

  'TURN-NESTING':
    'turns do not overlap; cancel, end and suspension name the open turn; each turn ends once, its steps closed',
  'TURN-NUMBERING': 'turns are 1, 2, 3 and so on',
  'TURN-WITHOUT-INPUT': 'a turn starts only while a message waits',
  'STEP-NESTING': 'steps do not overlap and lie in their turn',
  'STEP-NUMBERING': 'steps are 1, 2, 3 and so on in each turn',
  'STEP-SCOPE':
    'what belongs to a step names the open turn and step; headers lie in a turn; a failed hook names one that has begun, or is about to',
  'MAX-STEPS': 'no step over the turn’s maxSteps; a turn ends for it only when the results of its last step were owed',
  'RESULTS-OWED': 'a turn whose last step ran tools does not end as if the model had had the last word',
  'CANCEL-ONCE': 'a turn is cancelled at most once',
  'STEP-OUTCOME':
    'a step ends as what it came to: aborted under a cancel, interrupted by recovery, else by its answer and results, or their lack',
  'TURN-REASON':
    'a turn’s reason is one its last step and its place can give: blocked before a step, the step’s own error, max-tokens if one was cut, a policy where it stops',
  'RESUME-COUNT':
    'session/resumed adds one to the count if the turn had something in flight, none otherwise; progress begins it anew',
  'LIMIT-SPENT': 'a limit that ends a turn was reached, by what the log counts of tokens, time and cost',
  'LIMIT-KEEPS': 'a cancel by a bound keeps the inbox',
  'REPEATED-CALL': 'a call for whose repetition a turn ends is in the answer that follows, for the time it says',
  'CANCEL-REASON':
    'a cancelled turn ends aborted with the cause, or as the bound that cancelled it; no other turn does',
  'AFTER-CANCEL': 'once a turn is cancelled, or to be interrupted, nothing new starts in it',
  'INTERRUPT-REASON':
    'a turn ends interrupted if and only if it was reopened to be interrupted and not cancelled before',

  'TURN-CLAIMS': 'a turn that starts claims at once: next-step if it holds something, then next-turn',
  'STEP-CONSEQUENCE':
    'a step after which the turn cannot stop is followed at once by the claim of what waits for the next, or by the turn’s end',
  'CANCEL-CLEARS': 'a cancel that keeps nothing empties the queues at once',
  'CANCEL-ANSWERS': 'a call scheduled under a cancel is answered at once',
  'RESUME-FIRST': 'after a suspension, or the end of a seed with a turn open, the session is resumed before it goes on',
  'WAKE-STARTS-TURN': 'a waking splice at rest is followed by its turn',
  'OWED-STARTS-TURN': 'a turn that ends with work owed is followed by the next one',
  'APPROVAL-CONSEQUENCE': 'an approval is followed by its dispatch, a denial or expiry by the call’s result',

  'SPLICE-COUNT': 'a splice removes what is there, and as many as it says',
  'SPLICE-EMPTY': 'a splice removes or inserts something',
  'SPLICE-OUTCOME': 'a splice says what became of what it removed, and of nothing else',
  'SPLICE-PLACE':
    'new items go to the end of their queue, a replacement to the place it takes, what is put back to the head in its order',
  'WAKE-PLACE': 'only a new message wakes, and under a cancel only in next-turn',
  'MESSAGE-ID': 'a message id is used once in a session: by a message that waits or enters, by an answer, by a result',
  'MESSAGE-FATE': 'a message that was inserted is entered, dropped, canceled or pending: one of them, once',
  'MESSAGE-PLACE': 'messages enter right after step/start',
  'CLAIM-PLACE': 'claims lie between steps, and take one item of next-turn at most, for the first step',
  'CLAIM-WHOLE': 'a claim takes all of next-step, or the first of next-turn',
  'STEP-INPUT':
    'a step starts after a claim, and tells the model something: a message enters it, or results were claimed',
  'CLAIM-LOST': 'a message claimed and not entered is put back by an interruption and by a cancel that keeps the inbox',
  'RESULT-ITEM-PLACE': 'a tool-result item is put into next-step, within the step of its call, and not under a cancel',
  'RESULT-ITEM-CALLS':
    'the tool-result items of a step are its calls, all answered, once each and in the model’s order; it ends tool-calls with them, unless its turn’s steps are spent',
  'RESULT-ITEM-OUTLIVES': 'no tool-result item outlives its turn',

  'CALLS-OF-ANSWER':
    'an answer schedules the calls of its message, in their order, with ids new to the session, 128 at most',
  'CALL-ORDER': 'tool/call comes once for each call, in the model’s order, with its name and arguments',
  'PARALLEL-CAP': 'no more calls at once than maxParallelToolCalls',
  'EXCLUSIVE-ALONE': 'an exclusive call has the step to itself',
  'DISPATCH-STATE': 'tool/dispatch follows tool/call, or the approval that was asked for; runs count from 1',
  'DISPATCH-AGAIN': 'a call runs again only after a crash, if its onCrash allows it, and never in a fork',
  'APPROVAL-STATE': 'an approval is asked for an idle call, or for one a crash left with onCrash ask',
  'APPROVAL-SUBJECT': 'an approval is asked for the call’s own tool and arguments',
  'APPROVAL-ONCE': 'an approval that is pending is resolved once, for the run it names',
  'RESULT-ONCE': 'each call is answered once, in its step',
  'RESULT-MISSING': 'a step ends with all its calls answered',
  'RESULT-UNSCHEDULED': 'a result without its tool/call says that the call never started',
  'RESULT-UNDISPATCHED': 'a result that succeeds has its tool/dispatch',
  'RESULT-CODE':
    'a result says that the call never ran only if it did not, and that its outcome is unknown only if it did and nobody waits for it any more',
  'RESULT-ERROR': 'a result with an error is one, and none that is an error concludes the turn',
  'RESULT-UNASKED':
    'a call that does not run yet is answered under a cancel or an interruption as never begun, and once approval was asked for by the decision',
  'RESULT-AFTER-CRASH':
    'a call a crash or a fork left behind has a result of its own only by being run again or by its probe',
  'RESULT-SOURCE': 'a result cites its tool/call, if it had one',
  'LATE-RESULT': 'a late result is of the last run of a call that was answered without it, once',

  'CHUNK-ATTEMPT': 'a chunk belongs to the attempt that is asking',
  'REQUEST-HEADER': 'a request/header stands before the first chunk',
  'HEADER-REASON': 'the first request/header is the initial one, and one for a change differs from the one before',
  'REQUEST-CONTEXT': 'the model that is asked is the one request/context named last; it is logged when it changes',
  'REQUEST-DIGEST': 'the first chunk of an attempt, and no other, has the digest of the request the log gives',
  'STREAM-BLOCKS': 'deltas fall into an open block of their type; each block is opened and closed once',
  'STREAM-USAGE': 'usage comes once at most, before finish',
  'STREAM-FINISH': 'finish comes once, last, with no block open if it succeeds; an answer has one and agrees with it',
  'ANSWER-ATTEMPT': 'an answer belongs to the attempt that is asking',
  'ANSWER-ONCE': 'a step has one answer',
  'ANSWER-SAID':
    'an answer has the blocks and the usage of its chunks, of the model that was asked; of one that was cut off, the words',
  'ANSWER-SOURCES': 'an answer’s sources are the chunks of its attempt',
  'ANSWER-INTERRUPTED': 'an interrupted answer stands under a cancel and asks for no tools',
  'RETRY-ATTEMPT': 'a retry follows the failure of the attempt that is asking',
  'RETRY-FAILURE': 'a retry gives the failure its attempt’s stream ended with, if it ended with one',
  'RETRY-NUMBERING': 'retries of one policy count 1, 2, 3 under one id, up to its maxRetries',
  'RETRY-STARTED': 'llm/retry-started answers the retry being waited for, once, with the next attempt',

  'SURFACE-REPLACE':
    'a replacement names a range of the surface and cites all it covers; a result’s changes its content only',
  'REPLACE-IN-STEP': 'the surface is not replaced while a step is open',
  'HISTORY-PAIRING':
    'in the history of every request, and of a log at rest, each call is followed by its one result, in order, and no result stands alone',
} as const satisfies { readonly [rule: string]: string }

export type Rule = keyof typeof RULES
