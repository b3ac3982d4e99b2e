import type { LookupFunction } from 'node:net';
import type { SubgraphAnswer } from '../execution/types.ts';

/** What a subscription of a subgraph brings, read no faster than it is asked for. It ends once it is complete. */
export type Source = AsyncGenerator<SubgraphAnswer, void>;

/** Where and how a subscription of a subgraph is opened. */
export interface SourceOptions {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** Of host names, for connections. */
  readonly lookup: LookupFunction;
  /** Of one event. */
  readonly limitBytes: number;
  /** Ends it. */
  readonly signal: AbortSignal;
}

/** The service does not take subscriptions in this way; it may in another. */
export class NotSpokenError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'NotSpokenError';
  }
}
