import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import {
  endRequestSpan,
  nameSpan,
  type RequestTracing,
  startRequestSpan,
} from '@rollcall/platform/http/request-spans.ts';
import type { Span } from '@rollcall/platform/tracing/tracer.ts';

/**
 * Upgrades as parts of traces. What happens on a connection afterwards belongs to none of them: it
 * may last for days.
 */
export interface UpgradeSpans {
  begin(request: IncomingMessage, socket: Duplex): void;
  /** Undefined: it has ended. */
  of(socket: Duplex): Span | undefined;
  end(socket: Duplex, status: number): void;
}

/** @param routeOf the pattern of a path; undefined: it leads nowhere. */
export function createUpgradeSpans(
  tracing: RequestTracing,
  routeOf: (request: IncomingMessage) => string | undefined,
): UpgradeSpans {
  const spans = new WeakMap<Duplex, Span>();

  function end(socket: Duplex, status: number | undefined): void {
    const span = spans.get(socket);
    if (span === undefined) return;
    spans.delete(socket);
    endRequestSpan(span, status);
  }

  return {
    begin(request, socket) {
      const span = startRequestSpan(tracing, request);
      const route = routeOf(request);
      if (route !== undefined) nameSpan(span, { method: request.method ?? '' }, route);
      spans.set(socket, span);
      socket.once('close', () => end(socket, undefined));
    },
    of: (socket) => spans.get(socket),
    end,
  };
}
