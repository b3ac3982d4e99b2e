import { type IncomingMessage, METHODS } from 'node:http';
import type { Clock } from '@rollcall/platform/clock.ts';
import { HttpError } from '@rollcall/platform/http/errors.ts';
import { type App, nameRoute, pathOf, unrouted } from '@rollcall/platform/http/server.ts';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AccessLog } from '../../access-log.ts';
import { type AdmissionDeps, type Asked, admit } from '../../admission/admission.ts';
import { arrivedRequest } from '../../admission/admit-request.ts';
import type { Holder } from '../../admission/caller.ts';
import type { TrustedProxies } from '../../admission/client-address.ts';
import { GatewayError } from '../../errors.ts';
import { invalid } from '../../identity/access-tokens.ts';
import type { BackendIdentity, IdentityHeaders } from '../../identity/backend-identity.ts';
import { oauthErrorBody, TOKEN_PATH } from '../../routes/token-request.ts';
import type { Targets } from '../../upstream/discovery/targets.ts';
import { splitTarget } from '../../upstream/routing/path.ts';
import { type Destination, type Route, scopesFor } from '../../upstream/routing/table.ts';
import { requestOrigin } from '../request-origin.ts';
import { givenTraceContext } from '../trace-context.ts';
import { logOutcome, logRefusal } from './access-entry.ts';
import { routePattern } from './attempt-span.ts';
import { findTarget } from './find-target.ts';
import type { RequestMetrics } from './request-metrics.ts';
import type { Outcome, RestProxy } from './rest.ts';
import type { UpstreamFailure } from './upstream-failure.ts';

declare module 'fastify' {
  interface FastifyRequest {
    /** Whether its route has it logged. */
    isFollowed?: boolean;
  }
}

export interface ProxyRouteDeps {
  readonly admission: AdmissionDeps;
  readonly route: Route;
  readonly targets: Targets;
  readonly identity: BackendIdentity;
  readonly proxy: RestProxy;
  readonly trustedProxies: TrustedProxies;
  readonly requestMetrics: RequestMetrics;
  readonly clock: Clock;
  /** Of a request's body, in bytes. */
  readonly bodyLimit: number;
  /** Undefined: it is off. */
  readonly accessLog: AccessLog | undefined;
}

const ANONYMOUS: IdentityHeaders = [];

/**
 * Everything that no other route matches: to the service that the path names. The gateway's own
 * paths have their methods alone, unless a service has the path too.
 */
export function proxyRoute(app: App, deps: ProxyRouteDeps): void {
  answerNothingBefore(app);
  followRefusals(app, deps);
  // Bodies are passed on as they come, whatever they are.
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
  // Clients of the token endpoint read errors of RFC 6749, whatever the method.
  app.addHook('preSerialization', async ({ raw }, { statusCode }, payload) =>
    statusCode === 405 && pathOf(raw.url) === TOKEN_PATH ? oauthErrorBody(statusCode, payload) : payload,
  );
  app.all('/*', { config: { isPassedOn: true } }, (request, reply) => {
    const isOther = isOwn(app, deps, pathOf(request.raw.url));
    return isOther ? answerOther(deps, request, reply) : proxyRequest(deps, request, reply);
  });
}

/** Whether the gateway alone has a path, with other methods. */
function isOwn({ pathMethods }: App, { route, targets }: ProxyRouteDeps, path: string): boolean {
  if (!pathMethods.has(path)) return false;
  const service = route(path)?.service;
  return service === undefined || (targets.isComplete() && targets.find(service) === undefined);
}

/** @throws HttpError METHOD_NOT_ALLOWED, unless OPTIONS asks which methods a path has. */
async function answerOther({ accessLog }: ProxyRouteDeps, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const answer = unrouted(request, request.server.pathMethods);
  if (answer instanceof HttpError) throw answer;
  const ended = { request, trace: givenTraceContext(request.headers), service: undefined, subject: undefined };
  const outcome = { type: 'answered', status: 204, retries: 0 } as const;
  if (accessLog !== undefined) logOutcome(accessLog, ended, { outcome, ms: reply.elapsedTime });
  reply.status(204).header('allow', answer).send();
}

/** Has what is refused before {@link proxyRequest} logged. */
function followRefusals(app: App, { accessLog }: ProxyRouteDeps): void {
  app.decorateRequest('isFollowed', false);
  if (accessLog === undefined) return;
  app.addHook('onError', async (request, reply, error) => {
    if (request.isFollowed) return;
    const trace = givenTraceContext(request.headers);
    const refused = { request, trace, service: undefined, subject: undefined };
    logRefusal(accessLog, refused, { error, ms: reply.elapsedTime });
  });
}

/**
 * Fastify would refuse what it does not know by itself, past token, limit and access log: methods
 * such as PROPFIND, a content type that is none, and QUERY without one. What goes on to the service
 * are the headers as they came.
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

/**
 * Finds out who calls and whom, and passes the request on. Whatever becomes of it is logged once.
 *
 * @throws GatewayError, HttpError where it goes nowhere, or no answer of the service has begun.
 */
async function proxyRequest(deps: ProxyRouteDeps, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const { clock, accessLog } = deps;
  const startedAtMs = clock.monotonicMs();
  const { raw, span } = request;
  request.isFollowed = true;
  const trace = givenTraceContext(request.headers);
  let subject: string | undefined;
  let service: string | undefined;
  let outcome: Outcome;
  try {
    const arrived = arrivedRequest({ request, reply }, (caller) => {
      subject = caller.subject;
      span?.set({ 'rollcall.client': subject });
    });
    const { holder, asked } = await admit(deps.admission, arrived, () => readRequest(deps, request));
    const { destination, query } = asked;
    const { target, bodyLimit } = findTarget(deps, { request, destination });
    service = target.service;
    span?.set({ 'rollcall.service': service });
    const identity =
      holder === undefined ? ANONYMOUS : await identityOf(deps, { request: raw, destination, holder, service });
    outcome = await deps.proxy.forward({
      target,
      holder,
      path: `${destination?.path ?? '/'}${query}`,
      request: raw,
      response: reply.raw,
      forwarded: { ...requestOrigin(raw, deps.trustedProxies), requestId: request.id, service, identity },
      trace,
      span,
      addedHeaders: reply.getHeaders(),
      timeoutMs: destination?.rule?.timeoutMs,
      bodyLimit,
    });
  } catch (error) {
    const ms = clock.monotonicMs() - startedAtMs;
    if (accessLog !== undefined) logRefusal(accessLog, { request, trace, service, subject }, { error, ms });
    throw error;
  }
  const ms = clock.monotonicMs() - startedAtMs;
  if (outcome.type === 'failed' && outcome.failure.blame !== 'caller') span?.fail(outcome.failure.code);
  deps.requestMetrics.observe({ service, method: request.method }, { outcome, seconds: ms / 1000 });
  if (accessLog !== undefined) logOutcome(accessLog, { request, trace, service, subject }, { outcome, ms });
  // Fastify answers itself where no answer has begun.
  if (outcome.type === 'failed' && !outcome.begun) throw failureOf(outcome.failure, service);
  reply.hijack();
}

interface Identified {
  readonly request: IncomingMessage;
  readonly destination: Destination | undefined;
  readonly holder: Holder;
  readonly service: string;
}

function identityOf({ identity }: ProxyRouteDeps, { request, destination, holder, service }: Identified) {
  const lasts = destination?.rule?.actsOn === true && request.headers.accept?.includes('text/event-stream') === true;
  return lasts ? identity.lastingHeadersFor(holder.caller, service) : identity.headersFor(holder.caller, service);
}

interface AskedRequest extends Asked {
  /** Undefined: no route has the path. */
  readonly destination: Destination | undefined;
  /** With its question mark, or empty. */
  readonly query: string;
}

/** @throws GatewayError INVALID_PATH. */
function readRequest({ route }: ProxyRouteDeps, request: FastifyRequest): AskedRequest {
  const { path, query } = splitTarget(request.raw.url ?? '');
  const destination = route(path);
  const pattern = routePattern(destination);
  if (pattern !== undefined) nameRoute(request, pattern);
  const { limits, anonymous } = destination?.rule ?? {};
  const scopes = destination === undefined ? [] : scopesFor(destination, request.method);
  return { destination, query, scopes, limits, anonymous };
}

/** What the gateway answers where the service did not. */
function failureOf({ code, message }: UpstreamFailure, service: string): GatewayError {
  if (code === 'INVALID_TOKEN') return invalid('It has been revoked');
  return new GatewayError(code, { message, details: { service } });
}
