import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { commonError } from '../common-errors.ts';
import { type ErrorCatalogue, errorMessage, ServiceError } from '../errors.ts';
import { callerOf } from '../http/callers.ts';
import { createEventStreams, type EventStream, type EventStreams, eventStream } from '../http/event-streams.ts';
import type { Logger } from '../process/log.ts';
import { createConcurrencyLimiter } from '../queues/concurrency-limiter.ts';
import type { Routes } from '../service/app.ts';
import type { EventReader, Place } from './feed.ts';
import type { Followers } from './followers.ts';

/** Of one replica. */
const STREAMS = 1000;
const STREAMS_OF_SUBJECT = 100;
const PAGE = 100;
/** Then its caller has to show again who it is. */
const LONGEST_MS = 15 * 60_000;

export const streamErrors = {
  TOO_MANY_STREAMS: {
    status: 429,
    message: 'As many streams of events are open as may be: 100 of a subject at each replica, 1000 in all',
  },
} as const satisfies ErrorCatalogue;

/** The open streams of a replica. `open` throws TOO_MANY_STREAMS, and UNAVAILABLE once it stops. */
export function createSubjectStreams(): EventStreams {
  const limiter = createConcurrencyLimiter({ most: STREAMS, mostPerKey: STREAMS_OF_SUBJECT });
  return createEventStreams({
    admit(request: FastifyRequest) {
      const leave = limiter.tryEnter(callerOf(request).subject);
      if (leave === undefined) throw new ServiceError('TOO_MANY_STREAMS', streamErrors.TOO_MANY_STREAMS);
      return leave;
    },
    stopping: () => commonError('UNAVAILABLE'),
  });
}

export interface EventStreamDeps {
  readonly reader: EventReader;
  readonly followers: Followers;
  readonly streams: EventStreams;
  readonly log: Logger;
  /** A stream ends after so long, to be opened again; 15 min when absent. */
  readonly longestMs?: number;
}

/** The events of a subject as server-sent events, in the order in which they happened to each thing. */
export function eventStreamRoute(deps: EventStreamDeps): Routes {
  return (app) => {
    app.get(
      '/events',
      {
        config: { refuses: Object.values(streamErrors) },
        schema: {
          tags: ['webhooks'],
          summary: 'Follow what happens, as webhooks are told of it',
          description:
            'Begins behind the newest event, or behind that of Last-Event-ID: with `0` at the oldest, of 30 days ago. `synced` ' +
            'follows what there was already. `reset` says that the id is not known, or no longer: what was missed is not told. ' +
            'A stream ends after 15 minutes; open it again with the last id.',
          headers: Type.Object({
            'last-event-id': Type.Optional(Type.String({ description: 'Of the last event that was read' })),
          }),
          response: eventStream('`event` is the type, `data` the body of a webhook, `id` what a stream is resumed by'),
        },
      },
      async (request, reply) => {
        const { subject } = callerOf(request);
        const place = await deps.reader.placeOf(subject, request.headers['last-event-id']);
        const stream = deps.streams.open(reply);
        if (stream !== undefined) void write(deps, { stream, subject, place });
      },
    );
  };
}

interface OpenStream {
  readonly stream: EventStream;
  readonly subject: string;
  readonly place: Place & { readonly isReset: boolean };
}

/** Until nobody reads any more. Who cannot be told now ends, and comes back. */
async function write(deps: EventStreamDeps, { stream, subject, place }: OpenStream): Promise<void> {
  const { reader, followers, log, longestMs = LONGEST_MS } = deps;
  const follower = followers.follow(subject);
  const ageing = setTimeout(() => stream.end(), longestMs);
  let isOver = false;
  stream.onClose(() => {
    isOver = true;
    clearTimeout(ageing);
    follower.leave();
  });
  let { position, cursor } = place;
  let isSynced = false;
  stream.write(place.isReset ? 'event: reset\ndata: {}\n\n' : 'retry: 1000\n\n');
  try {
    // oxlint-disable-next-line no-unmodified-loop-condition -- onClose does
    while (!isOver) {
      follower.listen();
      const page = await reader.after(subject, position, PAGE);
      for (const event of page) {
        stream.write(`id: ${event.id}\nevent: ${event.type}\ndata: ${event.text}\n\n`);
        ({ position, id: cursor } = event);
      }
      const isAll = page.length < PAGE;
      if (isAll && !isSynced) stream.write(`id: ${cursor}\nevent: synced\ndata: {}\n\n`);
      isSynced ||= isAll;
      await stream.drained();
      if (isAll) await follower.heard();
    }
  } catch (error) {
    log.warn({ message: errorMessage(error) }, 'a stream of events ended');
    stream.end();
  }
}
