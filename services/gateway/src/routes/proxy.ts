import type { Clock } from '@rollcall/platform/clock.ts';
import { nameRoute } from '@rollcall/platform/http/request-spans.ts';
import { type App, serverError } from '@rollcall/platform/http/server.ts';
import { type TraceContext, traceIdOf } from '@rollcall/platform/tracing/trace-context.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Counter, Histogram, type Registry } from 'prom-client';
import type { Target, Targets } from '../discovery/targets.ts';
import { GatewayError } from '../errors.ts';
import type { BackendIdentity, IdentityHeaders } from '../identity/backend-identity.ts';
import { type Authenticator, type Caller, hasScope } from '../policy/caller.ts';
import type { TrustedProxies } from '../policy/limits/client-address.ts';
import type { Limits } from '../policy/limits/limits.ts';
import { routePattern } from '../proxy/attempt-span.ts';
import { requestOrigin } from '../proxy/request-origin.ts';
import type { Outcome, RestProxy } from '../proxy/rest.ts';
import { givenTraceContext, requestIdOf } from '../proxy/trace-context.ts';
import { splitTarget } from '../routing/path.ts';
import { type Destination, type Route, scopesFor } from '../routing/table.ts';
import { bearerOf, unauthenticated } from './bearer.ts';

export interface ProxyRouteDeps {
  readonly route: Route;
  readonly targets: Targets;
  readonly authenticator: Authenticator;
  readonly limits: Limits;
  readonly identity: BackendIdentity;
  readonly proxy: RestProxy;
  readonly trustedProxies: TrustedProxies;
  readonly metrics: Registry;
  readonly clock: Clock;
  /** Of a request's body, in bytes. */
  readonly bodyLimit: number;
  readonly accessLog: boolean;
}

const ANONYMOUS: IdentityHeaders = [];

/** Everything that no other route takes: to the service that the path names. */
export function proxyRoute(app: App, deps: ProxyRouteDeps): void {
  const observe = observer(deps.metrics);
  // Bodies are passed on as they come, whatever they are.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
  app.all('/*', async (request, reply) => {
    const startedAtMs = deps.clock.monotonicMs();
    const requestId = requestIdOf(request.headers['x-request-id']);
    reply.header('x-request-id', requestId);
    const { path, query } = splitTarget(request.raw.url ?? '');
    const destination = deps.route(path);
    const { span } = request;
    const pattern = routePattern(destination);
    if (span !== undefined && pattern !== undefined) nameRoute(span, request, pattern);
    const caller = await admit(deps, { request, reply, destination });
    span?.set({ 'rollcall.client': caller?.subject });
    const target = targetOf(deps, { request, destination, caller });
    span?.set({ 'rollcall.service': target.service });
    const given = givenTraceContext(request.headers);
    const outcome = await send(deps, { request, reply, target, destination, caller, requestId, query, given });
    if (outcome.type === 'failed' && outcome.failure.blame === 'service') span?.fail(outcome.failure.code);
    const seconds = (deps.clock.monotonicMs() - startedAtMs) / 1000;
    observe(target.service, request.method, { outcome, seconds });
    if (deps.accessLog) {
      const traceId = span?.traceId ?? (given === undefined ? undefined : traceIdOf(given.traceparent));
      logAccess(request, { target, caller, outcome, seconds, requestId, traceId, path });
    }
    if (outcome.type === 'failed' && !outcome.begun) {
      throw new GatewayError(outcome.failure.code, { details: { service: target.service } });
    }
  });
}

interface Arrived {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly destination: Destination | undefined;
}

/**
 * Who calls, counted against the limit. A failed authentication counts against the limit of the address: guessing is no cheaper
 * than asking.
 */
async function admit(deps: ProxyRouteDeps, { request, reply, destination }: Arrived): Promise<Caller | undefined> {
  const { limits, authenticator } = deps;
  let caller: Caller | undefined;
  let failure: unknown;
  try {
    const token = bearerOf(request);
    if (token !== undefined) caller = await authenticator.authenticate(token);
    else if (destination?.rule?.anonymous !== true) throw unauthenticated();
  } catch (err) {
    failure = err;
  }
  const verdict = await limits.check({
    caller,
    remoteAddress: request.socket.remoteAddress,
    forwardedFor: request.headers['x-forwarded-for'],
    route: failure === undefined ? destination?.rule?.limits : undefined,
  });
  if (verdict.refusal !== undefined) throw verdict.refusal;
  if (failure !== undefined) throw failure;
  reply.headers(verdict.headers);
  return caller;
}

interface Admitted {
  readonly request: FastifyRequest;
  readonly destination: Destination | undefined;
  readonly caller: Caller | undefined;
}

function targetOf({ targets, bodyLimit }: ProxyRouteDeps, { request, destination, caller }: Admitted): Target {
  if (destination === undefined) throw new GatewayError('ROUTE_NOT_FOUND');
  const { rule, service } = destination;
  if (rule?.methods !== undefined && !rule.methods.includes(request.method)) {
    const allow = rule.methods.join(', ');
    throw serverError('METHOD_NOT_ALLOWED', { message: `The route has only ${allow}`, headers: { allow } });
  }
  if (rule !== undefined && !(rule.anonymous && caller === undefined)) {
    requireScopes(scopesFor(rule, request.method), caller);
  }
  if (Number(request.headers['content-length'] ?? 0) > bodyLimit) throw new GatewayError('BODY_TOO_LARGE');
  const target = targets.find(service);
  if (target !== undefined) return target;
  if (!targets.isComplete()) throw new GatewayError('DISCOVERY_UNAVAILABLE', { headers: { 'retry-after': '1' } });
  throw new GatewayError('SERVICE_NOT_FOUND', { details: { service } });
}

function requireScopes(scopes: readonly string[], caller: Caller | undefined): void {
  const missing = scopes.filter((scope) => caller === undefined || !hasScope(caller, scope));
  if (missing.length === 0) return;
  throw new GatewayError('INSUFFICIENT_SCOPE', {
    message: `The token lacks the scope ${missing.join(', ')}`,
    headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${scopes.join(' ')}"` },
    details: { missing },
  });
}

interface Ready {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly target: Target;
  readonly destination: Destination | undefined;
  readonly caller: Caller | undefined;
  readonly requestId: string;
  readonly query: string;
  /** The trace that the caller says the request belongs to. */
  readonly given: TraceContext | undefined;
}

async function send(deps: ProxyRouteDeps, ready: Ready): Promise<Outcome> {
  const { request, reply, target, destination, caller, requestId, query, given } = ready;
  const identity = caller === undefined ? ANONYMOUS : await deps.identity.headersFor(caller, target.service);
  const outcome = await deps.proxy.forward({
    target,
    path: `${destination?.path ?? '/'}${query}`,
    request: request.raw,
    response: reply.raw,
    forwarded: { ...requestOrigin(request.raw, deps.trustedProxies), requestId, identity },
    trace: given,
    span: request.span,
    addedHeaders: reply.getHeaders(),
    timeoutMs: destination?.rule?.timeoutMs,
  });
  // Fastify answers itself where no answer has begun.
  if (outcome.type !== 'failed' || outcome.begun) reply.hijack();
  return outcome;
}

interface Measured {
  readonly outcome: Outcome;
  readonly seconds: number;
}

/** Rate, errors and duration of requests by service (the RED method). */
function observer(metrics: Registry): (service: string, method: string, measured: Measured) => void {
  const duration = new Histogram({
    name: 'rollcall_gateway_upstream_duration_seconds',
    help: 'Requests to services from their arrival at the gateway to the end of their answer.',
    labelNames: ['service', 'method', 'result'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [metrics],
  });
  const retries = new Counter({
    name: 'rollcall_gateway_upstream_retries_total',
    help: 'Requests sent to a service once more because no answer had begun.',
    labelNames: ['service'],
    registers: [metrics],
  });
  return (service, method, { outcome, seconds }) => {
    duration.observe({ service, method, result: resultOf(outcome) }, seconds);
    if (outcome.retries > 0) retries.inc({ service }, outcome.retries);
  };
}

function resultOf(outcome: Outcome): string {
  if (outcome.type === 'answered') return `${Math.floor(outcome.status / 100)}xx`;
  return outcome.type === 'failed' ? outcome.failure.code.toLowerCase() : 'abandoned';
}

interface Access {
  readonly target: Target;
  readonly caller: Caller | undefined;
  readonly outcome: Outcome;
  readonly seconds: number;
  readonly requestId: string;
  readonly traceId: string | undefined;
  readonly path: string;
}

/** The query is left out: it may hold what is no business of the log's. */
function logAccess({ log, method }: FastifyRequest, access: Access): void {
  const { target, caller, outcome, seconds, requestId, traceId, path } = access;
  const fields = {
    reqId: requestId,
    trace_id: traceId,
    method,
    path,
    service: target.service,
    subject: caller?.subject,
    result: outcome.type === 'answered' ? outcome.status : resultOf(outcome),
    ms: Math.round(seconds * 1e6) / 1000,
    retries: outcome.retries,
    ...(outcome.type === 'failed' ? { reason: outcome.failure.reason } : {}),
  };
  if (outcome.type === 'failed' && outcome.failure.blame === 'service')
    log.warn(fields, 'request not answered by the service');
  else log.info(fields, 'request');
}
