import { once } from 'node:events';
import { Readable } from 'node:stream';
import { type ServerWritableStream, status } from '@grpc/grpc-js';
import { catchUp, type FeedSource } from '../feeds/catch-up.ts';
import { cursorOf, versionIn } from '../feeds/cursor.ts';
import type { FeedEvent } from '../feeds/feed.ts';
import { createStreamLimits } from '../feeds/stream-limits.ts';
import type { RegistrationFeed } from '../registrations/domain/feed.ts';
import type { Registration } from '../registrations/domain/registration.ts';
import type { Calls } from './calls.ts';
import { type CallFailure, failure } from './errors.ts';
import { instanceMessage, serviceMessage, type WatchRequest, type WatchResponse } from './messages.ts';

type WatchCall = ServerWritableStream<WatchRequest, WatchResponse>;

/** What a stream tells of. */
interface Watched {
  readonly feed: RegistrationFeed;
  readonly source: FeedSource;
}

export interface WatchStreamsDeps extends Watched {
  /** To who asks for instances. */
  readonly instances: Watched;
  readonly lastBeatAt: (id: string) => Date | undefined;
  readonly calls: Calls;
}

/** Open calls of Watch, so that shutdown can end them. */
export interface WatchStreams {
  /** A handler of grpc-js. */
  readonly handle: (call: WatchCall) => void;
  closeAll(): void;
}

/** A subscriber that lets so many events pile up is cut off; it comes back with its cursor. */
const MAX_WAITING = 10_000;

const TYPES: Record<FeedEvent<Registration>['type'], WatchResponse['type']> = {
  added: 'TYPE_ADDED',
  modified: 'TYPE_MODIFIED',
  expired: 'TYPE_EXPIRED',
  removed: 'TYPE_REMOVED',
};

export function createWatchStreams(deps: WatchStreamsDeps): WatchStreams {
  const { calls, lastBeatAt } = deps;
  const ofServices = messagesOf(deps.feed, (item) => ({ service: serviceMessage(item, lastBeatAt(item.id)) }));
  const ofInstances = messagesOf(deps.instances.feed, (item) => ({
    instance: instanceMessage(item, lastBeatAt(item.id)),
  }));
  const limits = createStreamLimits();
  /** From their first moment: those whose token is still checked must not outlast the server. */
  const open = new Map<WatchCall, (failure: CallFailure) => void>();
  let isClosed = false;

  /** Sends events to the subscriber until the signal aborts. @param end ends the call. */
  async function sendEvents(call: WatchCall, signal: AbortSignal, end: (why: CallFailure) => void): Promise<void> {
    const { cursor, instances } = call.request;
    const { feed } = instances ? deps.instances : deps;
    const { eventMessage, beginning } = instances ? ofInstances : ofServices;
    const events = new Readable({ objectMode: true, read: () => undefined, signal });
    for (const message of beginning(cursor)) events.push(message);
    const most = events.readableLength + MAX_WAITING;
    const unsubscribe = feed.subscribe((event) => {
      events.push(eventMessage(event));
      if (events.readableLength > most) end({ code: status.RESOURCE_EXHAUSTED, details: 'The events are not read' });
    });
    try {
      for await (const message of events as AsyncIterable<WatchResponse>) {
        if (!call.write(message)) await once(call, 'drain', { signal });
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      unsubscribe();
    }
  }

  /** Serves the call until it is over. @returns how it ends; undefined: the subscriber has gone. */
  async function follow(call: WatchCall): Promise<CallFailure | undefined> {
    if (isClosed) return stopping();
    const over = new AbortController();
    const { signal } = over;
    let failure: CallFailure | undefined;
    const end = (why?: CallFailure) => {
      failure ??= why;
      over.abort();
    };
    open.set(call, end);
    call.once('cancelled', () => end());
    let leave: (() => void) | undefined;
    try {
      const caller = await Promise.race([calls.streamCallerOf(call), aborted(signal)]);
      if (caller === undefined || signal.aborted || call.cancelled) return failure;
      leave = limits.acquire(caller);
      const version = versionIn(call.request.cursor);
      const { feed, source } = call.request.instances ? deps.instances : deps;
      if (version !== undefined) await catchUp(feed, version, { source, signal });
      if (!signal.aborted) await sendEvents(call, signal, end);
    } finally {
      open.delete(call);
      leave?.();
    }
    return failure;
  }

  return {
    handle(call) {
      const ended = calls.measure('Watch');
      const finish = (failure: CallFailure | undefined) => {
        ended(failure?.code ?? status.CANCELLED);
        if (failure !== undefined) call.emit('error', failure);
      };
      follow(call).then(finish, (error: unknown) => finish(calls.failureOf('Watch', error)));
    },
    closeAll() {
      isClosed = true;
      for (const end of open.values()) end(stopping());
    },
  };
}

function stopping(): CallFailure {
  return failure('STOPPING', 'The registry is stopping; go on with the last cursor');
}

/** Resolves when the signal aborts. */
function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(undefined), { once: true }));
}

/** What subscribers are sent. */
function messagesOf(
  feed: RegistrationFeed,
  shown: (item: Registration) => Pick<WatchResponse, 'service' | 'instance'>,
) {
  const eventMessage = ({ type, item, version }: FeedEvent<Registration>): WatchResponse => ({
    type: TYPES[type],
    ...shown(item),
    cursor: cursorOf(version),
  });

  /** What a subscriber is sent first. */
  function* beginning(cursor: string): Generator<WatchResponse> {
    const from = versionIn(cursor);
    const resumed = from === undefined ? undefined : feed.since(from);
    if (resumed !== undefined) {
      for (const event of resumed) yield eventMessage(event);
      return;
    }
    if (cursor !== '') yield { type: 'TYPE_RESET' };
    const { version } = feed;
    // Somebody who got only a part of it cannot resume from there.
    for (const event of feed.snapshot()) yield { ...eventMessage(event), cursor: '' };
    yield { type: 'TYPE_SYNCED', cursor: cursorOf(version) };
  }

  return { eventMessage, beginning };
}
