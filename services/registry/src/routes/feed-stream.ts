import type { FastifyRequest } from 'fastify';
import type { EventStream } from './event-streams.ts';

/** What a feed tells its subscribers, with the store's version of it. */
interface VersionedEvent {
  readonly version: number;
  readonly type: string;
}

/** A feed that can be resumed, and what its events look like on the wire. */
interface StreamedFeed<Event extends VersionedEvent> {
  readonly feed: {
    since(version: number): readonly Event[] | undefined;
    snapshot(): readonly Event[];
    readonly version: number | undefined;
    subscribe(listener: (event: Event) => void): () => void;
  };
  /** One line of JSON. */
  readonly data: (event: Event) => string;
}

/**
 * Server-sent events (WHATWG HTML, "Server-sent events"). Ids are resource versions of the API server: a subscriber may
 * resume with Last-Event-ID at any replica. It begins with everything as `added` and then `synced`; when the id is too old to
 * resume from, `reset` says that all this comes anew.
 */
export function streamFeed<Event extends VersionedEvent>(
  stream: EventStream,
  request: FastifyRequest,
  { feed, data }: StreamedFeed<Event>,
): void {
  const frame = (event: Event) => `id: ${event.version}\nevent: ${event.type}\ndata: ${data(event)}\n\n`;
  const id = request.headers['last-event-id'];
  const resumed = typeof id === 'string' && /^\d{1,15}$/.test(id) ? feed.since(Number(id)) : undefined;
  if (resumed === undefined) {
    if (id !== undefined) stream.write('event: reset\ndata: {}\n\n');
    for (const event of feed.snapshot()) stream.write(`event: added\ndata: ${data(event)}\n\n`);
    stream.write(`id: ${feed.version}\nevent: synced\ndata: {}\n\n`);
  } else {
    stream.write(`retry: 1000\n\n${resumed.map(frame).join('')}`);
  }
  stream.onClose(feed.subscribe((event) => stream.write(frame(event))));
}
