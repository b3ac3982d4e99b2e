import type { App } from '@rollcall/platform/http/server.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { RegistryError } from '../domain/errors.ts';
import type { Feed, FeedEvent } from '../domain/feed.ts';
import type { Registration } from '../domain/ports.ts';
import { registrationRecord } from '../schemas/registrations.ts';
import { type Rendered, sendRendered } from './rendering.ts';

const KEEP_ALIVE_MS = 15_000;
/** A subscriber that lets this much pile up is cut off; it comes back with its last event id. */
const MAX_BUFFERED_BYTES = 16 * 1024 * 1024;
const MAX_STREAMS = 1000;

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
  const streams = new Set<() => void>();

  function data(registration: Registration): string {
    return JSON.stringify(registrationRecord(registration, lastBeatAt(registration.id)));
  }

  function frame({ version, type, registration }: FeedEvent): string {
    return `id: ${version}\nevent: ${type}\ndata: ${data(registration)}\n\n`;
  }

  return {
    open(request, reply) {
      if (streams.size >= MAX_STREAMS) {
        throw new RegistryError('TOO_MANY_STREAMS', `This replica has ${MAX_STREAMS} open event streams`);
      }
      reply.hijack();
      const { raw } = reply;
      // Gone while its token was checked: it would never say so again.
      if (raw.destroyed) return;
      raw.writeHead(200, {
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-store',
        'x-accel-buffering': 'no',
      });
      const write = (text: string) => {
        if (raw.destroyed) return;
        raw.write(text);
        if (raw.writableLength > MAX_BUFFERED_BYTES) raw.destroy();
      };
      const resumed = resume(request, feed);
      if (resumed === undefined) {
        if (request.headers['last-event-id'] !== undefined) write('event: reset\ndata: {}\n\n');
        for (const event of feed.snapshot()) write(`event: added\ndata: ${data(event.registration)}\n\n`);
        write(`id: ${feed.version}\nevent: synced\ndata: {}\n\n`);
      } else {
        write(`retry: 1000\n\n${resumed.map(frame).join('')}`);
      }
      const unsubscribe = feed.subscribe((event) => write(frame(event)));
      const keepAlive = setInterval(() => write(':\n\n'), KEEP_ALIVE_MS);
      const close = () => raw.end();
      streams.add(close);
      raw.on('close', () => {
        unsubscribe();
        clearInterval(keepAlive);
        streams.delete(close);
      });
    },
    get size() {
      return streams.size;
    },
    closeAll() {
      for (const close of streams) close();
    },
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
