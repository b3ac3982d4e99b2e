import type { Clock } from '@rollcall/platform/clock.ts';
import { METHODS } from '@rollcall/platform/http/node-http.ts';
import { type App, nameRoute, pathOf, serverError } from '@rollcall/platform/http/server.ts';
import { type TraceContext, traceIdOf } from '@rollcall/platform/tracing/trace-context.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Counter, Histogram, type Registry } from 'prom-client';
import { type AccessEntry, type AccessLog, refusalFields, rounded } from '../../access-log.ts';
import type { AdmissionDeps } from '../../admission/admission.ts';
import { admitRequest } from '../../admission/admit-request.ts';
import { requireScopes } from '../../admission/bearer.ts';
import type { Caller, Holder } from '../../admission/caller.ts';
import type { TrustedProxies } from '../../admission/client-address.ts';
import { GatewayError } from '../../errors.ts';
import { invalid } from '../../identity/access-tokens.ts';
import type { BackendIdentity, IdentityHeaders } from '../../identity/backend-identity.ts';
import { createServiceSeries } from '../../service-series.ts';
import type { Target, Targets } from '../../upstream/discovery/targets.ts';
import { type Destination, type Route, scopesFor } from '../../upstream/routing/table.ts';
import { requestOrigin } from '../request-origin.ts';
import { givenTraceContext, requestIdOf } from '../trace-context.ts';
import { routePattern } from './attempt-span.ts';
import { splitTarget } from './path.ts';
import type { Outcome, RestProxy } from './rest.ts';
import type { UpstreamFailure } from './upstream-failure.ts';

export interface ProxyRouteDeps extends AdmissionDeps {
  readonly route: Route;
  readonly targets: Targets;
  readonly identity: BackendIdentity;
  readonly proxy: RestProxy;
  readonly trustedProxies: TrustedProxies;
  readonly metrics: Registry;
  readonly clock: Clock;
  /** Of a request's body, in bytes. */
  readonly bodyLimit: number;
  /** Undefined: it is off. */
  readonly accessLog: AccessLog | undefined;
}

const ANONYMOUS: IdentityHeaders = [];
/** What services can be called with, where a route does not name methods. */
const PASSED_ON = ['DELETE', 'GET', 'HEAD', 'OPTIONS', 'PATCH', 'POST', 'PUT', 'QUERY', 'TRACE'];

/** Everything that no other route takes: to the service that the path names. */
export function proxyRoute(app: App, deps: ProxyRouteDeps): void {
  const observe = observer(deps);
  answerNothingBefore(app);
  // Bodies are passed on as they come, whatever they are.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
  app.all('/*', async (request, reply) => {
    const startedAtMs = deps.clock.monotonicMs();
    const requestId = requestIdOf(request.headers['x-request-id']);
    reply.header('x-request-id', requestId);
    const visit: Visit = { requestId, given: givenTraceContext(request.headers) };
    const elapsedMs = () => deps.clock.monotonicMs() - startedAtMs;
    let outcome: Outcome;
    try {
      outcome = await serve(deps, { request, reply, visit });
    } catch (error) {
      deps.accessLog?.write({ ...fieldsOf(request, visit), ...refusalFields(error), ms: rounded(elapsedMs()) });
      throw error;
    }
    const { service = '' } = visit;
    const ms = elapsedMs();
    if (outcome.type === 'failed' && outcome.failure.blame !== 'caller') request.span?.fail(outcome.failure.code);
    observe(service, request.method, { outcome, seconds: ms / 1000 });
    if (deps.accessLog !== undefined) logAccess(deps.accessLog, fieldsOf(request, visit), { outcome, ms });
    if (outcome.type === 'failed' && !outcome.begun) throw failureOf(outcome.failure, service);
  });
}

/**
 * Fastify would refuse what it does not know by itself, past token, limit and access log: methods such as PROPFIND, a content type that
 * is none, and QUERY without one. What goes on to the service are the headers as they came.
 */
function answerNothingBefore(app: App): void {
  for (const method of METHODS) {
    const isKnown = method !== 'QUERY' && app.supportedMethods.includes(method);
    if (!isKnown) app.addHttpMethod(method, { overrideExisting: true });
  }
  app.addHook('onRequest', ({ headers }, _reply, done) => {
    delete headers['content-type'];
    done();
  });
}

/** What is known of a request, the more the further it has come. */
interface Visit {
  readonly requestId: string;
  /** The trace that the caller says the request belongs to. */
  readonly given: TraceContext | undefined;
  subject?: string;
  service?: string;
}

interface Arrived {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly visit: Visit;
}

/** Finds out who calls and whom, and passes the request on. @throws GatewayError, HttpError where it goes nowhere. */
async function serve(deps: ProxyRouteDeps, { request, reply, visit }: Arrived): Promise<Outcome> {
  const { path, query } = splitTarget(request.raw.url ?? '');
  const destination = deps.route(path);
  const { span } = request;
  const pattern = routePattern(destination);
  if (pattern !== undefined) nameRoute(request, pattern);
  const holder = await admitRequest(deps, { request, reply }, destination?.rule);
  if (holder !== undefined) visit.subject = holder.caller.subject;
  span?.set({ 'rollcall.client': visit.subject });
  const target = targetOf(deps, { request, destination, caller: holder?.caller });
  visit.service = target.service;
  span?.set({ 'rollcall.service': target.service });
  return send(deps, { request, reply, target, destination, query, holder, visit });
}

interface Admitted {
  readonly request: FastifyRequest;
  readonly destination: Destination | undefined;
  readonly caller: Caller | undefined;
}

function targetOf({ targets, bodyLimit }: ProxyRouteDeps, { request, destination, caller }: Admitted): Target {
  if (destination === undefined) throw new GatewayError('ROUTE_NOT_FOUND');
  const { rule, service } = destination;
  const methods = rule?.methods ?? PASSED_ON;
  if (!methods.includes(request.method) || !PASSED_ON.includes(request.method)) {
    const allow = methods.filter((method) => PASSED_ON.includes(method)).join(', ');
    throw serverError('METHOD_NOT_ALLOWED', { message: `The route has only ${allow}`, headers: { allow } });
  }
  if (rule !== undefined) requireScopes(scopesFor(rule, request.method), caller);
  if (Number(request.headers['content-length'] ?? 0) > bodyLimit) throw new GatewayError('BODY_TOO_LARGE');
  const target = targets.find(service);
  if (target !== undefined) return target;
  if (!targets.isComplete()) throw new GatewayError('DISCOVERY_UNAVAILABLE', { headers: { 'retry-after': '1' } });
  throw new GatewayError('SERVICE_NOT_FOUND', { details: { service } });
}

interface Ready {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly target: Target;
  readonly destination: Destination | undefined;
  readonly query: string;
  readonly holder: Holder | undefined;
  readonly visit: Visit;
}

async function send(deps: ProxyRouteDeps, ready: Ready): Promise<Outcome> {
  const { request, reply, target, destination, query, holder, visit } = ready;
  const { requestId, given } = visit;
  const identity = holder === undefined ? ANONYMOUS : await deps.identity.headersFor(holder.caller, target.service);
  const outcome = await deps.proxy.forward({
    target,
    holder,
    path: `${destination?.path ?? '/'}${query}`,
    request: request.raw,
    response: reply.raw,
    forwarded: { ...requestOrigin(request.raw, deps.trustedProxies), requestId, service: target.service, identity },
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
function observer(deps: ProxyRouteDeps): (service: string, method: string, measured: Measured) => void {
  const { metrics, targets, clock } = deps;
  const isKnown = (service: string): boolean => targets.find(service) !== undefined;
  const durations = createServiceSeries<{ observe(seconds: number): void }>({ isKnown, clock });
  const repetitions = createServiceSeries<{ inc(count: number): void }>({ isKnown, clock });
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
    const result = resultOf(outcome);
    const series = durations.of(service, `${method} ${result}`, () => {
      const labels = { service, method, result };
      return { child: duration.labels(labels), remove: () => duration.remove(labels) };
    });
    series?.observe(seconds);
    if (outcome.retries === 0) return;
    const counter = repetitions.of(service, '', () => {
      return { child: retries.labels(service), remove: () => retries.remove(service) };
    });
    counter?.inc(outcome.retries);
  };
}

function resultOf(outcome: Outcome): string {
  if (outcome.type === 'answered') return `${Math.floor(outcome.status / 100)}xx`;
  return outcome.type === 'failed' ? outcome.failure.code.toLowerCase() : 'abandoned';
}

/** What the gateway answers where the service did not. */
function failureOf({ code }: UpstreamFailure, service: string): GatewayError {
  if (code === 'INVALID_TOKEN') return invalid('It has been revoked');
  return new GatewayError(code, { details: { service } });
}

type RequestFields = Omit<AccessEntry, 'result' | 'ms'>;

function fieldsOf({ method, span, raw }: FastifyRequest, { requestId, given, service, subject }: Visit): RequestFields {
  const trace_id = span?.traceId ?? (given === undefined ? undefined : traceIdOf(given.traceparent));
  return { reqId: requestId, trace_id, method, path: pathOf(raw.url), service, subject };
}

interface Served {
  readonly outcome: Outcome;
  readonly ms: number;
}

function logAccess(accessLog: AccessLog, fields: RequestFields, { outcome, ms }: Served): void {
  const result = outcome.type === 'answered' ? outcome.status : resultOf(outcome);
  const entry = { ...fields, result, ms: rounded(ms), retries: outcome.retries };
  if (outcome.type !== 'failed') accessLog.write(entry);
  else {
    const { blame, reason } = outcome.failure;
    if (blame !== 'caller') accessLog.warn({ ...entry, reason });
    else accessLog.write({ ...entry, reason });
  }
}
