import type { Caller } from '../../admission/caller.ts';
import { missingScopes } from '../../admission/scopes.ts';
import type { ChannelSource } from './channels/channel-source.ts';
import type { Stats } from './metrics.ts';
import { encode } from './protocol.ts';
import type { ConnectionView } from './reaction.ts';
import type { Sender } from './sender.ts';

export interface SubscriptionsDeps {
  readonly caller: Caller;
  readonly sources: readonly ChannelSource[];
  readonly sender: Sender;
  readonly stats: Stats;
}

/** What one connection follows. */
export interface Subscriptions {
  /** By channel. */
  readonly active: ReadonlyMap<string, unknown>;
  access: ConnectionView['access'];
  /** @param channel one that the caller has access to and does not follow yet. */
  add(channel: string, cursor: string | undefined): void;
  remove(channel: string): void;
  clear(): void;
  /** Events handed to the connection so far. */
  readonly eventsSent: number;
}

export function createSubscriptions({ caller, sources, sender, stats }: SubscriptionsDeps): Subscriptions {
  /** Functions that end them. */
  const active = new Map<string, () => void>();
  let isOver = false;
  let eventsSent = 0;
  const sourceOf = (channel: string) => sources.find((source) => source.serves(channel));

  function count(events: number): void {
    eventsSent += events;
    stats.eventsSent.inc(events);
  }

  function remove(channel: string): void {
    active.get(channel)?.();
    if (active.delete(channel)) stats.subscriptions.dec();
  }

  return {
    active,
    access(channel) {
      const source = sourceOf(channel);
      if (source === undefined) return 'unknown';
      const [missing] = missingScopes([source.scopeFor(channel)], caller);
      return missing === undefined ? 'allowed' : { missing };
    },
    add(channel, cursor) {
      let forget: (() => void) | undefined;
      const unsubscribe = sourceOf(channel)?.subscribe(
        { channel, caller, cursor },
        {
          begin({ isReset, frames }) {
            if (isReset) sender.send(encode({ type: 'reset', channel }));
            count(frames.length);
            forget = sender.sendBacklog(frames);
          },
          next(frame) {
            count(1);
            sender.send(frame);
          },
          ready: () => sender.ready(),
        },
      );
      active.set(channel, () => {
        unsubscribe?.();
        forget?.();
      });
      stats.subscriptions.inc();
      // It may have been too much already.
      if (isOver) remove(channel);
    },
    remove,
    clear() {
      isOver = true;
      for (const channel of active.keys()) remove(channel);
    },
    get eventsSent() {
      return eventsSent;
    },
  };
}
