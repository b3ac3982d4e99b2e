import type { App } from '@rollcall/platform/http/server.ts';
import { RegistryError } from '../../common/errors.ts';
import type { FeedSource } from '../../feeds/catch-up.ts';
import { createEventStreams } from '../../http/event-streams.ts';
import { type Exchange, streamFeed } from '../../http/feed-stream.ts';
import { type Rendered, sendRendered } from '../../http/rendered.ts';
import { eventStream, STREAM_REFUSALS, StreamHeaders } from '../../http/schemas.ts';
import type { Feed } from '../domain/feed.ts';
import { registrationRecord } from './registration-schemas.ts';

export interface WatchDeps {
  readonly feed: Feed;
  readonly source: FeedSource;
  readonly lastBeatAt: (id: string) => Date | undefined;
}

/** Open streams of server-sent events, so that shutdown can end them. */
export interface Watchers {
  /**
   * @throws RegistryError TOO_MANY_STREAMS, STREAM_SHARE_TAKEN, STORE_UNAVAILABLE to a subscriber
   * that knows more than this replica can receive.
   */
  open(exchange: Exchange): Promise<void>;
  readonly size: number;
  closeAll(): void;
}

export function createWatchers({ feed, source, lastBeatAt }: WatchDeps): Watchers {
  const streams = createEventStreams();
  return {
    open: (exchange) =>
      streamFeed(streams, exchange, {
        feed,
        source,
        data: ({ registration }) => JSON.stringify(registrationRecord(registration, lastBeatAt(registration.id))),
      }),
    get size() {
      return streams.size;
    },
    closeAll: () => streams.closeAll(),
  };
}

export interface WatchRouteDeps {
  readonly watchers: Watchers;
  /** A service may be called `watch`, too. */
  readonly find: (serviceName: string) => Rendered | undefined;
}

/**
 * GET /services/watch, unless a service of that name is registered and the caller did not ask for a
 * stream.
 */
export function watchRoute(app: App, { watchers, find }: WatchRouteDeps): void {
  app.get(
    '/services/watch',
    {
      config: { access: 'read', refusals: ['SERVICE_NOT_FOUND', ...STREAM_REFUSALS] },
      schema: {
        tags: ['services'],
        summary: 'Follow registrations as server-sent events: added, modified, expired, removed',
        description:
          'Begins with every service as `added`, then `synced`. Resumes after Last-Event-ID at any replica; `reset` says that the id is ' +
          'too old and everything comes anew. To who accepts no event stream it is the service named `watch`.',
        headers: StreamHeaders,
        response: eventStream('`data` is the record of the service, `id` the version of the store'),
      },
    },
    async (request, reply) => {
      const { accept = '*/*' } = request.headers;
      const namesake = accept.includes('text/event-stream') ? undefined : find('watch');
      if (namesake !== undefined) sendRendered(request, reply, namesake);
      else if (/text\/event-stream|\*/.test(accept)) await watchers.open({ request, reply });
      else throw new RegistryError('SERVICE_NOT_FOUND', "Service 'watch' is not in the registry");
    },
  );
}
