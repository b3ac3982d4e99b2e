import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { REQUEST_ID_HEADER } from './request-id.ts';

const KEEP_ALIVE_MS = 15_000;
const MOST_WAITING_BYTES = 16 * 1024 * 1024;

const STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store',
  'x-accel-buffering': 'no',
} as const;

/** One open stream of server-sent events. */
export interface EventStream {
  /** @param text whole events. Nothing happens once the subscriber is gone. */
  write(text: string): void;
  /** Resolves once what was written is on its way, or nobody is there any more: for who has more to write than a little. */
  drained(): Promise<void>;
  /** Ends it, once what was written has been fetched. @param last whole events. */
  end(last?: string): void;
  /** @param listener called when it is over, whoever ended it. */
  onClose(listener: () => void): void;
}

/**
 * Open streams of server-sent events (WHATWG HTML, "Server-sent events"), so that shutdown can end
 * them.
 */
export interface EventStreams {
  /**
   * Writes the reply from now on.
   *
   * @returns undefined when the subscriber has gone already, or asked for the head alone.
   * @throws what `admit` throws; once all are closed what `stopping` gives, for none may be left
   * open.
   */
  open(reply: FastifyReply): EventStream | undefined;
  readonly size: number;
  /** Ends those that are open now. */
  endAll(): void;
  /** Ends all, and opens no more. */
  closeAll(): void;
}

export interface EventStreamOptions {
  /** Counts the stream for its caller. @returns ends that. @throws when there are too many. */
  readonly admit: (request: FastifyRequest) => () => void;
  /** The refusal of who comes too late. */
  readonly stopping: () => Error;
  /**
   * A subscriber that lets more wait is cut off by the next event, and comes back; 16 MiB when absent.
   * One event may be larger.
   */
  readonly mostWaitingBytes?: number;
}

export function createEventStreams(options: EventStreamOptions): EventStreams {
  const { admit, stopping, mostWaitingBytes = MOST_WAITING_BYTES } = options;
  const streams = new Set<() => void>();
  let isClosed = false;
  const endAll = () => {
    for (const end of streams) end();
  };
  return {
    open(reply) {
      if (reply.request.method === 'HEAD') {
        void reply.hijack();
        reply.raw.writeHead(200, { ...STREAM_HEADERS, [REQUEST_ID_HEADER]: reply.request.id }).end();
        return undefined;
      }
      if (isClosed) throw stopping();
      const leave = admit(reply.request);
      reply.hijack();
      const { raw } = reply;
      // Gone while its token was checked: it would never say so again.
      if (raw.destroyed) {
        leave();
        return undefined;
      }
      raw.writeHead(200, { ...STREAM_HEADERS, [REQUEST_ID_HEADER]: reply.request.id });
      const write = (text: string) => {
        if (raw.destroyed || raw.writableEnded) return;
        if (raw.writableLength > mostWaitingBytes) raw.destroy();
        else raw.write(text);
      };
      const end = (last?: string) => void raw.end(last);
      const keepAlive = setInterval(() => {
        if (raw.writableLength === 0) write(':\n\n');
      }, KEEP_ALIVE_MS);
      streams.add(end);
      raw.on('close', () => {
        clearInterval(keepAlive);
        streams.delete(end);
        leave();
      });
      return { write, drained: () => drained(raw), end, onClose: (listener) => void raw.on('close', listener) };
    },
    get size() {
      return streams.size;
    },
    endAll,
    closeAll() {
      isClosed = true;
      endAll();
    },
  };
}

function drained(raw: ServerResponse): Promise<void> {
  if (raw.destroyed || !raw.writableNeedDrain) return Promise.resolve();
  return new Promise((resolve) => {
    const over = () => {
      raw.off('drain', over);
      raw.off('close', over);
      resolve();
    };
    raw.on('drain', over);
    raw.on('close', over);
  });
}

/** The answer of a route that streams events. @param description which events there are. */
export function eventStream(description: string) {
  return {
    200: {
      description: 'Server-sent events (WHATWG HTML); a comment every 15 s where there are none',
      headers: { 'Cache-Control': { type: 'string', enum: ['no-store'] } },
      content: { 'text/event-stream': { schema: Type.Unsafe<unknown>({ type: 'string', description }) } },
    },
  } as const;
}
