import { portOf } from '@rollcall/platform/outbound/url-host.ts';
import type { Attributes, Span } from '@rollcall/platform/tracing/tracer.ts';
import type { Endpoint } from '../../upstream/discovery/endpoint.ts';
import type { Destination } from '../../upstream/routing/table.ts';
import type { Attempt } from './upstream-failure.ts';

/** The pattern of paths that lead to where a request goes; undefined: it goes nowhere. */
export function routePattern(destination: Destination | undefined): string | undefined {
  return destination === undefined ? undefined : (destination.rule?.prefix ?? '/api/v1/{service}');
}

interface AttemptFacts {
  readonly method: string;
  /** Below the target's registered URL. */
  readonly path: string;
  readonly retries: number;
  readonly endpoint: Pick<Endpoint, 'origin' | 'basePath' | 'address'>;
}

/** Pure. What is said of a request to a service, without its query. */
export function attemptAttributes(service: string, { method, path, retries, endpoint }: AttemptFacts): Attributes {
  const { origin, basePath, address } = endpoint;
  return {
    'http.request.method': method,
    'url.full': `${origin}${basePath}${path.split('?', 1)[0]}`,
    ...serverAttributes(origin),
    'network.peer.address': address,
    'rollcall.service': service,
    'http.request.resend_count': retries === 0 ? undefined : retries,
  };
}

/**
 * Pure. Whom a call goes to.
 *
 * @param origin `http://host:port`; without the port: that of the scheme.
 */
export function serverAttributes(origin: string): Attributes {
  const url = new URL(origin);
  return { 'server.address': url.hostname, 'server.port': portOf(url) };
}

/**
 * Of an answer that a service gave, also one that says that the caller is wrong, the client's span
 * has failed.
 */
export function endAttemptSpan(span: Span, attempt: Attempt): void {
  if (attempt.type === 'answered') {
    span.set({ 'http.response.status_code': attempt.status });
    if (attempt.status >= 400) span.fail(String(attempt.status));
  } else if (attempt.type === 'failed') span.fail(attempt.failure.code);
  else span.set({ 'rollcall.abandoned': true });
  span.end();
}
