import type { App } from '@rollcall/platform/http/server.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { RegistryError } from '../domain/errors.ts';
import type { Feed, FeedEvent } from '../domain/feed.ts';
import type { Registration } from '../domain/ports.ts';
import { registrationRecord } from '../schemas/registrations.ts';
import { createEventStreams } from './event-streams.ts';
import { type Rendered, sendRendered } from './rendering.ts';

export interface WatchDeps {
  readonly feed: Feed;
  readonly lastBeatAt: (id: string) => Date | undefined;
}

/** Open streams of server-sent events, so that shutdown can end them. */
export interface Watchers {
  /** @throws RegistryError TOO_MANY_STREAMS. */
  open(request: FastifyRequest, reply: FastifyReply): void;
  readonly size: number;
  closeAll(): void;
}

/**
 * Server-sent events (WHATWG HTML, "Server-sent events"). Ids are resource versions of the API server: a subscriber may
 * resume with Last-Event-ID at any replica. It begins with every service as `added` and then `synced`; when the id is
 * too old to resume from, `reset` says that all this comes anew.
 */
export function createWatchers({ feed, lastBeatAt }: WatchDeps): Watchers {
  const streams = createEventStreams();

  function data(registration: Registration): string {
    return JSON.stringify(registrationRecord(registration, lastBeatAt(registration.id)));
  }

  function frame({ version, type, registration }: FeedEvent): string {
    return `id: ${version}\nevent: ${type}\ndata: ${data(registration)}\n\n`;
  }

  return {
    open(request, reply) {
      const stream = streams.open(reply);
      if (stream === undefined) return;
      const resumed = resume(request, feed);
      if (resumed === undefined) {
        if (request.headers['last-event-id'] !== undefined) stream.write('event: reset\ndata: {}\n\n');
        for (const event of feed.snapshot()) stream.write(`event: added\ndata: ${data(event.registration)}\n\n`);
        stream.write(`id: ${feed.version}\nevent: synced\ndata: {}\n\n`);
      } else {
        stream.write(`retry: 1000\n\n${resumed.map(frame).join('')}`);
      }
      stream.onClose(feed.subscribe((event) => stream.write(frame(event))));
    },
    get size() {
      return streams.size;
    },
    closeAll: () => streams.closeAll(),
  };
}

function resume(request: FastifyRequest, feed: Feed): readonly FeedEvent[] | undefined {
  const id = request.headers['last-event-id'];
  if (typeof id !== 'string' || !/^\d{1,15}$/.test(id)) return undefined;
  return feed.since(Number(id));
}

export interface WatchRouteDeps {
  readonly watchers: Watchers;
  /** A service may be called `watch`, too. */
  readonly find: (serviceName: string) => Rendered | undefined;
}

/** GET /services/watch, unless a service of that name is registered and the caller did not ask for a stream. */
export function watchRoute(app: App, { watchers, find }: WatchRouteDeps): void {
  app.get(
    '/services/watch',
    {
      // The answer to a HEAD would never end.
      exposeHeadRoute: false,
      schema: {
        tags: ['services'],
        summary: 'Follow registrations as server-sent events: added, modified, expired, removed',
        produces: ['text/event-stream'],
      },
    },
    (request, reply) => {
      const { accept = '*/*' } = request.headers;
      const namesake = accept.includes('text/event-stream') ? undefined : find('watch');
      if (namesake !== undefined) sendRendered(request, reply, namesake);
      else if (/text\/event-stream|\*/.test(accept)) watchers.open(request, reply);
      else throw new RegistryError('SERVICE_NOT_FOUND', "Service 'watch' is not in the registry");
    },
  );
}
