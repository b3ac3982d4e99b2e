import type { Logger } from '@rollcall/platform/process/log.ts';
import { failedCall, readErrors } from '../execution/errors.ts';
import type { GraphAnswer, GraphOperation, PlannedSubscription } from '../execution/graph.ts';
import { type GraphError, SourceErrors, type SubgraphAnswer } from '../execution/types.ts';
import type { EndReason } from './subscription-metrics.ts';

/** Who has subscribed. */
export interface Listener<Context> {
  /** In whose name subgraphs are called. */
  readonly context: Context;
  /** @param answer JSON of an answer of GraphQL. */
  next(answer: string): void;
  /** Nothing comes any more. @param errors why; undefined: the subscription is complete. */
  end(errors?: readonly GraphError[]): void;
}

/** What was asked for, of which part of the graph. */
export interface SubscribedOperation extends GraphOperation {
  readonly contract: string | undefined;
}

export interface FeedDeps<Context> {
  readonly operation: SubscribedOperation;
  readonly planned: PlannedSubscription<Context>;
  /** For one event. */
  readonly deadlineMs: number;
  readonly log: Logger;
  /** Called with each event. */
  readonly onEvent: () => void;
  /** Called once it is over, whoever ended it. */
  readonly onEnd: (reason: EndReason) => void;
}

const LATE: GraphError = {
  message: 'The event was not answered in time',
  extensions: { code: 'DEADLINE_EXCEEDED' },
};

/** One subscription at a subgraph, and all who listen to it: those of one caller that ask for the same. */
export class Feed<Context> {
  readonly operation: SubscribedOperation;
  readonly #deps: FeedDeps<Context>;
  readonly #listeners = new Set<Listener<Context>>();
  readonly #over = new AbortController();
  #planned: PlannedSubscription<Context>;
  /** The event that is being answered. */
  #event: AbortController | undefined;

  constructor(deps: FeedDeps<Context>) {
    this.#deps = deps;
    this.operation = deps.operation;
    this.#planned = deps.planned;
  }

  /** It begins with the first listener. @returns what lets the listener leave; with the last one it ends. */
  add(listener: Listener<Context>): () => void {
    this.#listeners.add(listener);
    if (this.#listeners.size === 1) void this.#run(listener.context);
    return () => {
      if (this.#listeners.delete(listener) && this.#listeners.size === 0) this.#finish('left');
    };
  }

  /** Goes on by another graph, where what happens is told by the same call. @returns whether it does. */
  goOnBy(planned: PlannedSubscription<Context>): boolean {
    if (JSON.stringify(planned.source) !== JSON.stringify(this.#planned.source)) return false;
    this.#planned = planned;
    return true;
  }

  /** Tells all who listen. @param errors why it ends; undefined: it is complete. */
  end(reason: EndReason, errors?: readonly GraphError[]): void {
    const listeners = [...this.#listeners];
    this.#listeners.clear();
    this.#finish(reason);
    for (const listener of listeners) listener.end(errors);
  }

  #finish(reason: EndReason): void {
    if (this.#over.signal.aborted) return;
    const over = new Error('The subscription is over');
    this.#over.abort(over);
    this.#event?.abort(over);
    this.#deps.onEnd(reason);
  }

  /** One event after the other: they come in the order in which they happened. */
  async #run(context: Context): Promise<void> {
    const { signal } = this.#over;
    const planned = this.#planned;
    try {
      for await (const event of planned.open(context, signal)) {
        this.#deps.onEvent();
        const answer = JSON.stringify(await this.#answerTo(event));
        signal.throwIfAborted();
        for (const listener of this.#listeners) listener.next(answer);
      }
      this.end('complete');
    } catch (error) {
      if (!signal.aborted) this.end('failed', errorsOf(error, planned.source.subgraph));
    }
  }

  /** In the name of who came last: that proof of who calls holds longest. */
  async #answerTo(event: SubgraphAnswer): Promise<GraphAnswer> {
    this.#over.signal.throwIfAborted();
    const newest = [...this.#listeners].at(-1);
    if (newest === undefined) throw new Error('Nobody listens');
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(LATE), this.#deps.deadlineMs);
    this.#event = limit;
    try {
      return await this.#planned.answer(event, newest.context, limit.signal);
    } catch (error) {
      this.#over.signal.throwIfAborted();
      if (error === LATE) return { errors: [LATE] };
      this.#deps.log.error({ err: error }, 'an event of a subscription cannot be answered');
      throw error;
    } finally {
      clearTimeout(timer);
      this.#event = undefined;
    }
  }
}

function errorsOf(error: unknown, subgraph: string): readonly GraphError[] {
  const errors = error instanceof SourceErrors ? readErrors(error.errors, subgraph) : [];
  if (errors.length === 0) return [failedCall(error, subgraph)];
  // Their paths are of a document that the client does not know.
  return errors.map(({ message, extensions }) => ({ message, extensions }));
}
