import type { TSchema } from 'typebox';
import type { Caller } from '../../../admission/caller.ts';

/** The text of one message, made once for all who get it. */
export type Frame = Buffer;

/** What a subscription begins with. */
export interface Opening {
  /**
   * The cursor could not be resumed from: what follows is everything, and what was known before
   * counts no more.
   */
  readonly isReset: boolean;
  /** The missed events or everything there is, with `synced` at the end. */
  readonly frames: readonly Frame[];
}

/** Gets what happens in a channel. `begin` and `next` are called synchronously and must not throw. */
export interface Subscriber {
  /** Once, before any event: at once, or as soon as the source knows what there is. Again where it has to begin anew. */
  begin(opening: Opening): void;
  next(frame: Frame): void;
  /** Resolves once nothing waits for the peer to read: for a source that can wait, whose peers are never too slow. */
  ready(): Promise<void>;
}

export interface Subscription {
  readonly channel: string;
  readonly caller: Caller;
  /** Resume after this event; undefined: begin with everything there is. */
  readonly cursor: string | undefined;
}

/** How a channel is described to subscribers. */
export interface ChannelDescription {
  /** The name, with `{parameters}`. */
  readonly address: string;
  readonly summary: string;
  /** That a token needs one of. */
  readonly scope: string;
  /** Of its events. */
  readonly payload: TSchema;
}

/** Where the events of one or several channels come from. */
export interface ChannelSource {
  readonly channels: readonly ChannelDescription[];
  serves(channel: string): boolean;
  /** @returns the scope that subscribing to a channel needs, which it serves. */
  scopeFor(channel: string): string;
  /** @returns a function that ends the subscription. */
  subscribe(subscription: Subscription, subscriber: Subscriber): () => void;
}
