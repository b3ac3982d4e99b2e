import {
  createListedCache,
  type ItemChange,
  type ListedCacheOptions,
  type ListedEvent,
} from '@rollcall/client/listed-cache.ts';
import { type EventParts, encodeEvent } from '../protocol.ts';
import type { ChannelSource, Frame, Opening, Subscriber, Subscription } from './channel-source.ts';
import { keptFrame, listedFrames } from './kept-frames.ts';

export interface TopicOptions<Item extends object, Gone extends string> extends ListedCacheOptions<Item> {
  /** The channels in which an item appears. */
  readonly channelsOf: (item: Item) => readonly string[];
  /** What subscribers receive of a change. Of an item that is added, always the same. */
  readonly payloadOf: (change: ItemChange<Item, Gone>) => object;
  /** How many past events are kept for subscribers that come back. */
  readonly capacity: number;
}

/**
 * A set of items that the registry sends, and everybody who follows it here. No I/O: it is fed by
 * {@link follow}.
 *
 * A cursor is the id of the registry's event, and good for nothing but to be shown again. Where
 * several events have the same one (the differences that a full list brought to light have that of
 * the event before), resuming repeats all but the first.
 */
export interface Topic<Item extends object, Gone extends string> {
  /** To be called for every new connection to the registry. @returns the cursor to resume from. */
  beginConnection(): string | undefined;
  /**
   * Stores one event and sends it to the subscribers, so many at a time: it pauses between, for
   * others to have their turn. It has to be run to its end before the next event.
   */
  apply(event: ListedEvent<Item, Gone>): Generator<void, void>;
  /** Whether all there is was known once. */
  isReady(): boolean;
  subscribe(subscription: Pick<Subscription, 'channel' | 'cursor'>, subscriber: Subscriber): () => void;
}

/** Subscribers that get an event without a pause: a few milliseconds. */
const TOLD_AT_ONCE = 250;

interface Member {
  readonly subscriber: Subscriber;
  /** How many events there had been: those before are in what it began with. */
  readonly joinedAt: number;
  /** Where it resumes, as long as it waits for the topic to be ready. */
  readonly cursor: string | undefined;
}

interface Channel {
  readonly members: Set<Member>;
  /** Everything there is and `synced`, until something changes. */
  snapshot: Snapshot | undefined;
}

interface Snapshot {
  /** What it is complete up to. */
  readonly cursor: string | undefined;
  readonly frames: readonly Frame[];
}

export function createTopic<Item extends object, Gone extends string>(
  options: TopicOptions<Item, Gone>,
): Topic<Item, Gone> {
  const { channelsOf, payloadOf, capacity } = options;
  const cache = createListedCache<Item, Gone>(options);
  const log = createEventLog(capacity);
  const channels = new Map<string, Channel>();
  const listedFrame = listedFrames(payloadOf);
  let isReady = false;

  function* publish(change: ItemChange<Item, Gone>, cursor: string): Generator<void, void> {
    const event = log.append({ payload: payloadOf(change), channels: channelsOf(change.item), cursor });
    const isYieldDue = pacer();
    for (const name of event.channels) {
      const channel = channels.get(name);
      if (channel === undefined) continue;
      channel.snapshot = undefined;
      const frame = event.frame(name);
      for (const { subscriber, joinedAt } of channel.members) {
        if (joinedAt > event.number) continue;
        subscriber.next(frame);
        if (isYieldDue()) yield;
      }
    }
  }

  function snapshotOf(name: string, channel: Channel): readonly Frame[] {
    const cursor = log.newest();
    if (channel.snapshot !== undefined && channel.snapshot.cursor === cursor) return channel.snapshot.frames;
    const frames: Frame[] = [];
    for (const item of cache.items()) if (channelsOf(item).includes(name)) frames.push(listedFrame(item, name));
    frames.push(syncedFrame(name));
    channel.snapshot = { cursor, frames };
    return frames;
  }

  function syncedFrame(name: string): Frame {
    return encodeEvent({ channel: name, cursor: log.newest(), payload: { type: 'synced' } });
  }

  function openingOf(name: string, channel: Channel, cursor: string | undefined): Opening {
    const missed = cursor === undefined ? undefined : log.since(cursor);
    if (missed === undefined) return { isReset: cursor !== undefined, frames: snapshotOf(name, channel) };
    const frames = missed.filter((event) => event.channels.includes(name)).map((event) => event.frame(name));
    return { isReset: false, frames: [...frames, syncedFrame(name)] };
  }

  function* becomeReady(): Generator<void, void> {
    isReady = true;
    const isYieldDue = pacer();
    const waiting = [...channels].flatMap(([name, { members }]) => Array.from(members, (member) => ({ name, member })));
    for (const { name, member } of waiting) {
      const channel = channels.get(name);
      if (channel?.members.has(member) !== true) continue;
      member.subscriber.begin(openingOf(name, channel, member.cursor));
      if (isYieldDue()) yield;
    }
  }

  return {
    beginConnection: () => cache.beginConnection(),
    *apply(event) {
      const wasListing = cache.isListing();
      const changes = cache.apply(event);
      // What a list shows has happened at some time since the last event: whoever resumes from
      // there needs all of it.
      const cursor = wasListing ? undefined : event.cursor;
      if (isReady) for (const change of changes) yield* publish(change, cursor ?? log.newest() ?? '');
      if (event.cursor !== undefined && !cache.isListing()) log.reach(event.cursor);
      if (event.type === 'synced' && !isReady) yield* becomeReady();
    },
    isReady: () => isReady,
    subscribe({ channel: name, cursor }, subscriber) {
      const channel = channels.get(name) ?? { members: new Set(), snapshot: undefined };
      const member = { subscriber, cursor, joinedAt: log.count() };
      channels.set(name, channel);
      channel.members.add(member);
      if (isReady) subscriber.begin(openingOf(name, channel, cursor));
      return () => {
        channel.members.delete(member);
        if (channel.members.size === 0 && channels.get(name) === channel) channels.delete(name);
      };
    },
  };
}

/** A topic as a source of channels, which all need the scope of the first. */
export function sourceOf(
  topic: Pick<Topic<object, string>, 'subscribe'>,
  { channels, serves }: Pick<ChannelSource, 'channels' | 'serves'>,
): ChannelSource {
  const scope = channels[0]?.scope ?? '';
  return {
    channels,
    serves,
    scopeFor: () => scope,
    subscribe: (subscription, subscriber) => topic.subscribe(subscription, subscriber),
  };
}

/** @returns a function that says after every so many calls that it is time for a pause. */
function pacer(): () => boolean {
  let calls = 0;
  return () => {
    calls += 1;
    return calls % TOLD_AT_ONCE === 0;
  };
}

interface LoggedEvent {
  /** How many there had been before it. */
  readonly number: number;
  readonly channels: readonly string[];
  /** The same bytes for everybody. */
  frame(channel: string): Frame;
}

/** The latest events, and from which cursors they are complete. */
interface EventLog {
  append(parts: Pick<LoggedEvent, 'channels'> & Pick<EventParts, 'payload'> & { readonly cursor: string }): LoggedEvent;
  /** How many events there have been. */
  count(): number;
  /** Nothing is missing up to this cursor, event or not. */
  reach(cursor: string): void;
  /** Undefined before the first {@link reach}. */
  newest(): string | undefined;
  /** Undefined when not all events after the cursor are known here. */
  since(cursor: string): readonly LoggedEvent[] | undefined;
}

function createEventLog(capacity: number): EventLog {
  let events: LoggedEvent[] = [];
  /** How many events have been forgotten. */
  let forgotten = 0;
  /** How many events there had been when a cursor was first reached, in that order. */
  const positions = new Map<string, number>();
  let newest: string | undefined;

  const count = () => forgotten + events.length;

  function reach(cursor: string): void {
    newest = cursor;
    if (!positions.has(cursor)) positions.set(cursor, count());
    if (events.length > capacity * 2) {
      forgotten += events.length - capacity;
      events = events.slice(-capacity);
    }
    for (const [known, position] of positions) {
      if (position >= forgotten && positions.size <= capacity * 2) break;
      positions.delete(known);
    }
  }

  return {
    append({ payload, channels, cursor }) {
      const frames = new Map<string, Frame>();
      const event: LoggedEvent = {
        number: count(),
        channels,
        frame(channel) {
          const frame = frames.get(channel) ?? keptFrame({ channel, cursor, payload });
          frames.set(channel, frame);
          return frame;
        },
      };
      events.push(event);
      reach(cursor);
      return event;
    },
    count,
    reach,
    newest: () => newest,
    since(cursor) {
      const position = positions.get(cursor);
      return position === undefined ? undefined : events.slice(position - forgotten);
    },
  };
}
