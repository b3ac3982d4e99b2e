import type { FastifyReply, FastifyRequest } from 'fastify';
import { catchUp, type FeedSource, type Followed } from '../feeds/catch-up.ts';
import type { EventStreams } from './event-streams.ts';

/** What a feed sends its subscribers, with the store's version of it. */
interface VersionedEvent {
  readonly version: number;
  readonly type: string;
}

/** A feed that can be resumed, and its events on the wire. */
interface StreamedFeed<Event extends VersionedEvent> {
  readonly feed: Followed & {
    since(version: number): readonly Event[] | undefined;
    snapshot(): readonly Event[];
    readonly version: number | undefined;
    subscribe(listener: (event: Event) => void): () => void;
  };
  readonly source: FeedSource;
  /** One line of JSON. */
  readonly data: (event: Event) => string;
}

/** A request for a stream, and its answer. */
export interface Exchange {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/**
 * Server-sent events (WHATWG HTML, "Server-sent events"). Ids are resource versions of the API
 * server: a subscriber may resume with Last-Event-ID at any replica. It begins with everything as
 * `added` and then `synced`; when the id is too old to resume from, `reset` says that all this
 * comes anew.
 *
 * @throws RegistryError TOO_MANY_STREAMS, STREAM_SHARE_TAKEN; STORE_UNAVAILABLE where the
 * subscriber knows more than this replica can receive.
 */
export async function streamFeed<Event extends VersionedEvent>(
  streams: EventStreams,
  { request, reply }: Exchange,
  { feed, source, data }: StreamedFeed<Event>,
): Promise<void> {
  const frame = (event: Event) => `id: ${event.version}\nevent: ${event.type}\ndata: ${data(event)}\n\n`;
  const id = request.headers['last-event-id'];
  const version = typeof id === 'string' && /^\d{1,15}$/.test(id) ? Number(id) : undefined;
  if (version !== undefined && request.method !== 'HEAD') await untilCaughtUp(version, reply, { feed, source });
  const stream = streams.open(reply);
  if (stream === undefined) return;
  const resumed = version === undefined ? undefined : feed.since(version);
  if (resumed === undefined) {
    if (id !== undefined) stream.write('event: reset\ndata: {}\n\n');
    for (const event of feed.snapshot()) stream.write(`event: added\ndata: ${data(event)}\n\n`);
    stream.write(`id: ${feed.version}\nevent: synced\ndata: {}\n\n`);
  } else {
    stream.write(`retry: 1000\n\n${resumed.map(frame).join('')}`);
  }
  stream.onClose(feed.subscribe((event) => stream.write(frame(event))));
}

async function untilCaughtUp(
  version: number,
  reply: FastifyReply,
  { feed, source }: { readonly feed: Followed; readonly source: FeedSource },
): Promise<void> {
  const gone = new AbortController();
  const leave = () => gone.abort();
  reply.raw.once('close', leave);
  try {
    await catchUp(feed, version, { source, signal: gone.signal });
  } catch (error) {
    // The next connection may lead to another replica.
    reply.header('connection', 'close');
    throw error;
  } finally {
    reply.raw.off('close', leave);
  }
}
