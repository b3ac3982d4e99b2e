import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { readTraceContext } from '../tracing/trace-context.ts';
import type { Attributes, Span, Tracer } from '../tracing/tracer.ts';
import type { App } from './server.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Of the request; absent where it is not traced. */
    span?: Span | undefined;
  }
}

/** How a request came here. */
export interface RequestOrigin {
  /** Whose request it is, as far as proxies in between are trusted. */
  readonly clientAddress: string;
  readonly protocol: string;
  /** With the port, where one was given; empty: unknown. */
  readonly host: string;
}

export interface RequestTracing {
  readonly tracer: Tracer;
  /**
   * Routes that are asked in short intervals, by monitoring for instance: they would hide
   * everything else.
   */
  readonly untraced: readonly string[];
  /** That of the connection, over HTTP, when absent. */
  readonly originOf?: (request: IncomingMessage) => RequestOrigin;
  /**
   * The path of a request as a span may have it, of its path and query: some paths hold secrets. As
   * it came when absent.
   */
  readonly shownPath?: (target: string) => string;
}

/**
 * Makes a span of every request, which its route finds as `request.span`. It ends with the answer,
 * or with the connection.
 */
export function traceRequests(app: App, tracing: RequestTracing): void {
  const isUntraced = new Set(tracing.untraced);
  app.decorateRequest('span', undefined);
  app.addHook('onRequest', (request, reply, done) => {
    const route = request.routeOptions.url;
    if (route === undefined || !isUntraced.has(route)) {
      const span = startRequestSpan(tracing, request.raw);
      if (route !== undefined) nameSpan(span, request, route);
      request.span = span;
      const { raw } = reply;
      // What a route learns from the end of a connection it says before the next turn.
      raw.once('close', () => setImmediate(() => endRequestSpan(span, statusOf(raw))));
    }
    done();
  });
}

/** Begins the span of a request to a server, named by its method until its route is known. */
export function startRequestSpan(
  { tracer, originOf = directOrigin, shownPath = (target) => target }: RequestTracing,
  request: IncomingMessage,
): Span {
  const { headers, method = '', url = '' } = request;
  const given = readTraceContext(headers['traceparent'], headers['tracestate']);
  const shown = { method, headers, url: shownPath(url) };
  return tracer.startServer(spanName(method), given, requestAttributes(shown, originOf(request)));
}

/** @param route of few values: a pattern, not a path. */
export function nameSpan(span: Span, { method }: Pick<FastifyRequest, 'method'>, route: string): void {
  span.rename(`${spanName(method)} ${route}`);
  span.set({ 'http.route': route });
}

/**
 * A request that was refused for a fault of its caller has not failed (semantic conventions, "HTTP
 * server spans").
 *
 * @param status undefined: there was no answer, because the caller had gone.
 */
export function endRequestSpan(span: Span, status: number | undefined): void {
  span.set({ 'http.response.status_code': status });
  if (status !== undefined && status >= 500) span.fail(String(status));
  span.end();
}

function statusOf({ headersSent, statusCode }: ServerResponse): number | undefined {
  return headersSent ? statusCode : undefined;
}

/**
 * Those of RFC 9110 and 5789: others are one name, so that callers cannot invent any number of
 * them.
 */
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH']);

function spanName(method: string): string {
  return METHODS.has(method) ? method : 'HTTP';
}

/** Pure. Without the query: it may hold what is no business of anybody's. */
export function requestAttributes(
  { method = '', url = '', headers }: Pick<IncomingMessage, 'method' | 'url' | 'headers'>,
  { clientAddress, protocol, host }: RequestOrigin,
): Attributes {
  const isKnown = METHODS.has(method);
  const [, name, port] = /^(\[[^\]]*\]|[^:]*)(?::(\d{1,5}))?$/.exec(host) ?? [];
  return {
    'http.request.method': isKnown ? method : '_OTHER',
    'http.request.method_original': isKnown ? undefined : method,
    'url.path': url.split('?', 1)[0],
    'url.scheme': protocol,
    'server.address': name === '' ? undefined : name,
    'server.port': port === undefined ? undefined : Number(port),
    'client.address': clientAddress,
    'user_agent.original': headers['user-agent'],
  };
}

/** What the connection says. */
function directOrigin({ socket, headers }: IncomingMessage): RequestOrigin {
  return { clientAddress: socket.remoteAddress ?? '', protocol: 'http', host: headers.host ?? '' };
}
