import { type EventStreams, eventStream } from '@rollcall/platform/http/event-streams.ts';
import type { App } from '@rollcall/platform/http/server.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { RegistryError } from '../common/errors.ts';
import { catchUp, type FeedSource } from '../feeds/catch-up.ts';
import { cursorOf, versionIn } from '../feeds/cursor.ts';
import type { Feed, FeedEvent } from '../feeds/feed.ts';
import { STREAM_REFUSALS, StreamHeaders } from './schemas.ts';

const InstancesQuery = Type.Object({
  instances: Type.Optional(
    Type.Enum(['true', 'false'], {
      description: '`true`: of each program that is registered under a name, not of names',
    }),
  ),
});

/** What a stream tells of. */
export interface Watched<Item> {
  readonly feed: Feed<Item>;
  readonly source: FeedSource;
  /** The item as the API shows it. */
  readonly record: (item: Item) => object;
}

/** The stream of everything of a kind. */
export interface WatchRoute<Item> extends Watched<Item> {
  /** As the document calls one of them; the stream of `service` is `/services/watch`. */
  readonly kind: 'service' | 'job';
  readonly summary: string;
  /** One of them may be called `watch`, too, and is answered to who accepts no event stream. */
  readonly namesake: {
    /** Which one it is. */
    readonly described: string;
    /** @returns false where there is none. */
    readonly send: (request: FastifyRequest, reply: FastifyReply) => boolean;
    /** What is answered then. */
    readonly absent: RegistryError;
  };
  /** What is told of in place of them to who asks by `?instances=true`. */
  readonly instances?: Watched<Item>;
  readonly streams: EventStreams;
}

/** GET `/services/watch` or `/jobs/watch`. */
export function watchRoute<Item>(app: App, route: WatchRoute<Item>): void {
  const { kind, summary, namesake, instances } = route;
  app.get(
    `/${kind}s/watch`,
    {
      config: { access: 'read', refusals: [namesake.absent.code, ...STREAM_REFUSALS] },
      schema: {
        tags: [`${kind}s`],
        summary,
        description:
          `Begins with every ${kind} as \`added\`, then \`synced\`. Resumes after Last-Event-ID at any replica; \`reset\` says that ` +
          `the id is too old and everything comes anew. To who accepts no event stream it is ${namesake.described}.`,
        headers: StreamHeaders,
        ...(instances === undefined ? {} : { querystring: InstancesQuery }),
        response: eventStream(`\`data\` is the record of the ${kind} or instance, \`id\` what a stream is resumed by`),
      },
    },
    async (request, reply) => {
      const { accept = '*/*' } = request.headers;
      if (!accept.includes('text/event-stream') && namesake.send(request, reply)) return reply;
      if (!/text\/event-stream|\*/.test(accept)) throw namesake.absent;
      const watched = instances !== undefined && asksForInstances(request.query) ? instances : route;
      await streamFeed({ ...watched, kind, streams: route.streams }, request, reply);
      return undefined;
    },
  );
}

function asksForInstances(query: unknown): boolean {
  return typeof query === 'object' && query !== null && 'instances' in query && query.instances === 'true';
}

/**
 * Server-sent events (WHATWG HTML, "Server-sent events"). Ids are cursors: a subscriber may resume with Last-Event-ID at any replica. It begins with everything as
 * `added` and then `synced`; when the id is too old to resume from, `reset` says that all this
 * comes anew.
 *
 * @throws RegistryError TOO_MANY_STREAMS, STREAM_SHARE_USED; STORE_UNAVAILABLE before the first
 * list, and where the subscriber knows more than this replica can receive.
 */
async function streamFeed<Item>(
  { kind, record, feed, source, streams }: Watched<Item> & Pick<WatchRoute<Item>, 'kind' | 'streams'>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  // An empty list would count as the truth.
  if (feed.version === 0) {
    throw new RegistryError('STORE_UNAVAILABLE', `The ${kind}s have not been read from the Kubernetes API yet`);
  }
  const data = ({ item }: FeedEvent<Item>) => JSON.stringify(record(item));
  const frame = (event: FeedEvent<Item>) =>
    `id: ${cursorOf(event.version)}\nevent: ${event.type}\ndata: ${data(event)}\n\n`;
  const id = request.headers['last-event-id'];
  const version = typeof id === 'string' ? versionIn(id) : undefined;
  if (version !== undefined && request.method !== 'HEAD') await untilCaughtUp(version, reply, { feed, source });
  const stream = streams.open(reply);
  if (stream === undefined) return;
  const resumed = version === undefined ? undefined : feed.since(version);
  if (resumed === undefined) {
    if (id !== undefined) stream.write('event: reset\ndata: {}\n\n');
    for (const event of feed.snapshot()) stream.write(`event: added\ndata: ${data(event)}\n\n`);
    stream.write(`id: ${cursorOf(feed.version)}\nevent: synced\ndata: {}\n\n`);
  } else {
    stream.write(`retry: 1000\n\n${resumed.map(frame).join('')}`);
  }
  stream.onClose(feed.subscribe((event) => stream.write(frame(event))));
}

async function untilCaughtUp<Item>(
  version: number,
  reply: FastifyReply,
  { feed, source }: Pick<WatchRoute<Item>, 'feed' | 'source'>,
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
