import type { App } from '@rollcall/platform/http/server.ts';
import { RegistryError } from '../../common/errors.ts';
import type { FeedSource } from '../../feeds/catch-up.ts';
import { createEventStreams } from '../../http/event-streams.ts';
import { type Exchange, streamFeed } from '../../http/feed-stream.ts';
import { type Rendered, sendRendered } from '../../http/rendered.ts';
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
      config: { access: 'read' },
      schema: {
        tags: ['services'],
        summary: 'Follow registrations as server-sent events: added, modified, expired, removed',
        produces: ['text/event-stream'],
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
