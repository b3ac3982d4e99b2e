import { errorMessage } from '@rollcall/platform/errors.ts';
import { channelScope } from '@rollcall/platform/http/scopes.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { backoffMs, sleep } from '@rollcall/platform/retry.ts';
import type { EventSourceMessage } from 'eventsource-parser';
import { Type } from 'typebox';
import type { OpenServiceEvents } from '../../../upstream/service-events.ts';
import { encodeEvent } from '../protocol.ts';
import type { ChannelSource, Subscriber, Subscription } from './channel-source.ts';

const RETRY = { baseMs: 250, maxMs: 10_000 };
/** A stream that ends sooner counts as a failure. */
const STABLE_AFTER_MS = 5000;

const SubjectEvent = Type.Object({
  type: Type.String({ description: 'What happened, such as `payment.succeeded`; `synced`' }),
  id: Type.Optional(Type.String({ format: 'uuid', description: 'The `webhook-id` of the same event' })),
  timestamp: Type.Optional(Type.String({ format: 'date-time' })),
  data: Type.Optional(Type.Object({}, { description: 'The message, payment or whatever it happened to' })),
});

export interface SubjectChannelsDeps {
  readonly open: OpenServiceEvents;
  readonly log: Logger;
}

/** What happens to what belongs to the caller, by the service that keeps it. */
export function subjectChannels(deps: SubjectChannelsDeps): readonly ChannelSource[] {
  return [
    channelOf(deps, {
      address: 'messages',
      service: 'communication',
      summary: "What happens to the caller's messages",
    }),
    channelOf(deps, {
      address: 'payments',
      service: 'payment',
      summary: "What happens to the caller's payments, refunds, subscriptions and invoices",
    }),
  ];
}

interface Described {
  readonly address: string;
  readonly service: string;
  readonly summary: string;
}

/**
 * One stream of the service for each subscription: the service knows whose events they are, keeps
 * them, and finds a cursor again. What its subscriber does not read yet stays there.
 */
function channelOf(deps: SubjectChannelsDeps, { address, service, summary }: Described): ChannelSource {
  const scope = channelScope(address);
  return {
    channels: [{ address, summary, scope, payload: SubjectEvent }],
    serves: (channel) => channel === address,
    scopeFor: () => scope,
    subscribe(subscription, subscriber) {
      const over = new AbortController();
      void follow(deps, { service, subscription, subscriber, signal: over.signal });
      return () => over.abort();
    },
  };
}

interface Following {
  readonly service: string;
  readonly subscription: Subscription;
  readonly subscriber: Subscriber;
  readonly signal: AbortSignal;
}

/** Over one stream after the other. What was missed in between comes with the next. */
async function follow({ open, log }: SubjectChannelsDeps, following: Following): Promise<void> {
  const { service, subscription, subscriber, signal } = following;
  const { channel, caller } = subscription;
  const teller = createTeller(channel, subscriber);
  // As it came from a client; those of services need no encoding, and others are not known there.
  let cursor = subscription.cursor === undefined ? undefined : encodeURIComponent(subscription.cursor);
  for (let failures = 0; !signal.aborted; failures += 1) {
    const startedAt = performance.now();
    let reason = 'the service ended the stream';
    try {
      for await (const message of open(service, { caller, cursor, signal })) {
        await subscriber.ready();
        if (signal.aborted) return;
        teller.tell(message);
        cursor = message.id ?? cursor;
      }
    } catch (error) {
      reason = errorMessage(error);
    }
    if (signal.aborted) return;
    if (performance.now() - startedAt >= STABLE_AFTER_MS) failures = 0;
    const retryInMs = backoffMs(failures, RETRY);
    log.debug({ channel, reason, retryInMs }, 'events of a subject are not followed');
    await sleep(retryInMs, signal);
  }
}

/** Hands the messages of a service on, and hides from the subscriber that there were several streams. */
function createTeller(channel: string, subscriber: Subscriber): { tell(message: EventSourceMessage): void } {
  let hasBegun = false;
  let isSynced = false;

  function begin(isReset: boolean): void {
    hasBegun = true;
    isSynced = false;
    subscriber.begin({ isReset, frames: [] });
  }

  return {
    tell({ event, id: cursor, data }) {
      if (event === 'reset') return begin(true);
      if (!hasBegun) begin(false);
      if (event === 'synced' && isSynced) return undefined;
      isSynced ||= event === 'synced';
      const payload = event === 'synced' ? { type: event } : parsed(data);
      if (payload !== undefined) subscriber.next(encodeEvent({ channel, cursor, payload }));
      return undefined;
    },
  };
}

/** Undefined for what is no event. */
function parsed(data: string): object | undefined {
  try {
    const value: unknown = JSON.parse(data);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
