import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { type TypeBoxTypeProvider, TypeBoxValidatorCompiler } from '@fastify/type-provider-typebox';
import {
  type FastifyBaseLogger,
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifySchema,
  fastify,
  LogController,
  type RawServerDefault,
} from 'fastify';
import type { SchemaErrorDataVar } from 'fastify/types/schema.js';
import { Histogram, type Registry } from 'prom-client';
import { Settings } from 'typebox/system';
import type { Logger } from '../process/log.ts';
import { bodyFault, jsonParser } from './body-text.ts';
import { prepareClosing } from './closing.ts';
import { wordlessPatterns } from './documented.ts';
import { HttpError, plainErrorBody, type RenderError, serverError, serverErrors } from './errors.ts';
import { followExpectations } from './expectations.ts';
import { createPathMethods, type PathMethods } from './path-methods.ts';
import { createRawRefusals, type RawRefusalOptions } from './raw-refusals.ts';
import { isHttp1, requestFault } from './request-faults.ts';
import { headerFault, isDecodable, isDecodableQuery } from './request-head.ts';
import { REQUEST_ID_HEADER, requestIdOf } from './request-id.ts';
import { nameSpan, type RequestTracing, traceRequests } from './request-spans.ts';
import { toOriginForm } from './request-target.ts';
import { describeSchemaFaults, fieldFaults, MOST_FAULTS } from './schema-faults.ts';

declare module 'fastify' {
  interface FastifyInstance {
    /** Of the routes whose requests are not passed on. */
    pathMethods: PathMethods;
  }
  interface FastifyRequest {
    /** See {@link nameRoute}. */
    routeName?: string | undefined;
  }
  interface FastifyContextConfig {
    /**
     * Query and body go on to somebody else as they came: they need not be UTF-8, nor in a coding
     * that is known here.
     */
    isPassedOn?: boolean;
  }
}

/** A Fastify application whose routes are typed by their TypeBox schemas. */
export type App = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

export interface ServerOptions {
  readonly log: Logger;
  readonly metrics: Registry;
  /** Largest request body in bytes; a larger one is answered with 413. */
  readonly bodyLimit: number;
  /** Turns an error of the domain into its answer; undefined: not one of its errors. */
  readonly mapError: (error: unknown) => HttpError | undefined;
  /** The body of error answers; that of the registry API when absent. */
  readonly renderError?: RenderError;
  /** How long callers may read their answers once the server closes; then they are cut off. */
  readonly closingLimitMs: number;
  /**
   * Once it says so, every answer closes its connection: who keeps connections leaves by itself,
   * instead of sending a request over one that is idle just when it is closed.
   */
  readonly isStopping?: () => boolean;
  /**
   * A request that has not come in full by then is answered with 408; 30 s when absent, 0: never.
   */
  readonly requestTimeoutMs?: number;
  /** How often connections are checked for requests that are too slow; every 30 s when absent. */
  readonly connectionsCheckingIntervalMs?: number;
  /** Undefined: requests are not traced. */
  readonly tracing?: RequestTracing | undefined;
  /**
   * Which requests to upgrade become the event `upgrade`; absent: none. Others are answered as if
   * they had not asked (RFC 9110, section 7.8): Java's client asks for HTTP/2 with every request.
   */
  readonly acceptsUpgrade?: (request: IncomingMessage) => boolean;
  /**
   * Called with what is refused before it is a request of a route; logged at level debug when
   * absent.
   */
  readonly onRawRefusal?: RawRefusalOptions['onRawRefusal'];
}

/**
 * Longer than any proxy in front keeps idle connections (commonly 60 s): a proxy that reuses a
 * connection just as the server closes it answers 502.
 */
const KEEP_ALIVE_TIMEOUT_MS = 95_000;
const REQUEST_TIMEOUT_MS = 30_000;
const CHECKING_INTERVAL_MS = 30_000;
/** More than a request line can have. */
const MAX_PARAM_LENGTH = 100_000;
/** No route has this path, and none but one for all paths matches it. */
const NO_ROUTE = '/%25';

/**
 * A Fastify application with what all Rollcall services share: no coercion of types, every error in
 * the contract's shape, an id on each answer, request duration metrics, and time limits. It does not listen.
 */
export function createServer(options: ServerOptions): App {
  const { log, metrics, bodyLimit, mapError, closingLimitMs, renderError = plainErrorBody } = options;
  const { acceptsUpgrade = () => false } = options;
  const loggerInstance: FastifyBaseLogger = log;
  const answer = (reply: FastifyReply, error: HttpError): FastifyReply =>
    reply.status(error.statusCode).headers(error.headers).send(renderError(error));
  const logRawRefusal: RawRefusalOptions['onRawRefusal'] = ({ error, request, requestId: reqId }) =>
    log.debug({ reqId, method: request?.method, code: error.statusCode, reason: error.message }, 'request refused');
  const rawRefusals = createRawRefusals({ renderError, onRawRefusal: options.onRawRefusal ?? logRawRefusal });
  const app = fastify({
    loggerInstance,
    logController: new LogController({ disableRequestLogging: true }),
    // A logger of its own for every request costs a tenth of a lookup: what is logged of a request
    // names its id instead.
    childLoggerFactory: (logger) => logger,
    genReqId: ({ headers }) => requestIdOf(headers[REQUEST_ID_HEADER]),
    bodyLimit,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    requestTimeout: options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS,
    http: {
      connectionsCheckingInterval: options.connectionsCheckingIntervalMs ?? CHECKING_INTERVAL_MS,
      shouldUpgradeCallback: (request) => isHttp1(request) && acceptsUpgrade(request),
      // Node would refuse what has none past all hooks; see headerFault.
      requireHostHeader: false,
    },
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    forceCloseConnections: 'idle',
    // What comes over an open connection while the server closes is still answered; the answer
    // closes the connection.
    return503OnClosing: false,
    clientErrorHandler: (error, socket) => rawRefusals.onClientError(error, socket),
    rewriteUrl: (request) => toRoutable(request),
  }).withTypeProvider<TypeBoxTypeProvider>();
  rawRefusals.watch(app.server);
  // So many bytes as a head may have are no more fields than that; Node would drop what is beyond
  // its limit without a word.
  app.server.maxHeadersCount = 0;
  // Of all validators in the process: there are eight by itself.
  Settings.Set({ maxErrors: MOST_FAULTS });
  app.setValidatorCompiler(TypeBoxValidatorCompiler);
  app.removeContentTypeParser(['application/json', 'text/plain']);
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, jsonParser(app));
  app.addHook('onRequest', ({ raw, id, originalUrl }, reply, done) => {
    if (raw.url === NO_ROUTE) raw.url = toOriginForm({ url: originalUrl, headers: raw.headers });
    reply.header(REQUEST_ID_HEADER, id);
    if (options.isStopping?.() === true) reply.header('connection', 'close');
    if (hasNoBody(raw.headers)) delete raw.headers['content-type'];
    done();
  });
  if (options.tracing !== undefined) traceRequests(app, options.tracing);
  app.decorateRequest('routeName', undefined);
  const expectsTooMuch = followExpectations(app.server);
  const pathMethods = createPathMethods();
  app.decorate('pathMethods', pathMethods);
  // Behind the hooks of all routes, by which answers get their id and their line in the log; before
  // any body is asked for.
  app.addHook('preParsing', (...[request, reply, , done]) => {
    const { raw } = request;
    const refusal = expectsTooMuch(raw) ? expectationFailed() : (requestFault(raw) ?? headFault(request));
    if (refusal !== undefined) done(refusal);
    else if (request.is404) answerUnrouted(request, reply);
    else done(isBodyRead(request) ? bodyFault(raw.headers) : undefined);
  });
  measureRequests(app, metrics);
  closeInOrder(app, closingLimitMs);
  app.addHook('onRoute', ({ url, method, routePath, config, schema }) => {
    requireWords(schema, `${method.toString()} ${url}`);
    if (config?.isPassedOn === true) return;
    pathMethods.add(url, method);
    // Fastify reports only one of the two paths of a route at its prefix, /docs and /docs/.
    if (routePath === '') pathMethods.add(`${url}/`, method);
  });
  app.setErrorHandler((error, request, reply) => {
    const known = error instanceof HttpError ? error : (mapError(error) ?? fromFastify(error, request));
    if (known !== undefined) return answer(reply, known);
    const { id: reqId, method, routeOptions } = request;
    request.log.error({ err: error, reqId, method, route: routeOptions.url }, 'request failed');
    return answer(reply, internalError());
  });
  app.setNotFoundHandler((request, reply) => answerUnrouted(request, reply));
  return app;

  function answerUnrouted(request: FastifyRequest, reply: FastifyReply): void {
    const refusal = unrouted(request, pathMethods);
    if (refusal instanceof HttpError) answer(reply, refusal);
    else reply.status(204).header('allow', refusal).send();
  }
}

/** Counts and times requests by route, and logs each at level debug. */
function measureRequests(app: App, metrics: Registry): void {
  const duration = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Duration of HTTP requests.',
    labelNames: ['method', 'route', 'code'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    registers: [metrics],
  });
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.routeName ?? request.routeOptions.url ?? '<unknown>';
    duration.observe({ method: request.method, route, code: reply.statusCode }, reply.elapsedTime / 1000);
    const { id: reqId, method, log: requestLog } = request;
    requestLog.debug({ reqId, method, route, code: reply.statusCode, ms: reply.elapsedTime }, 'request');
    done();
  });
}

function closeInOrder(app: App, closingLimitMs: number): void {
  const beginClosing = prepareClosing(app.server, closingLimitMs);
  app.addHook('preClose', beginClosing);
}

/**
 * Says where a request goes that one route of Fastify matches with many others: for metrics and
 * traces.
 *
 * @param route of few values: a pattern, not a path.
 */
export function nameRoute(request: FastifyRequest, route: string): void {
  request.routeName = route;
  if (request.span !== undefined) nameSpan(request.span, request, route);
}

/** Fails at the start, so that no route is missed. @throws Error where a request could be refused by a pattern alone. */
function requireWords({ body, params, querystring, headers }: FastifySchema = {}, route: string): void {
  const [at] = wordlessPatterns({ body, params, querystring, headers });
  if (at !== undefined) throw new Error(`${route} has no words for the pattern of ${at}: see patternInWords`);
}

function expectationFailed(): HttpError {
  return serverError('EXPECTATION_FAILED', { message: 'The server meets no expectation but 100-continue' });
}

/**
 * The path to route a request by. The router would refuse one that cannot be decoded without any
 * hook: the answer had no id and no line in a log, and no page could read it. {@link headFault}
 * refuses it behind the hooks.
 */
function toRoutable(request: IncomingMessage): string {
  const url = toOriginForm(request);
  return isDecodable(pathOf(url)) ? url : NO_ROUTE;
}

/**
 * What is wrong with a request whatever it asks for. A path that a route of its own matches can be
 * decoded, or it would not.
 */
function headFault({ raw, is404, routeOptions }: FastifyRequest): HttpError | undefined {
  const url = raw.url ?? '';
  const queryAt = url.indexOf('?');
  if ((is404 || routeOptions.url?.includes('*') === true) && !isDecodable(pathOf(url)))
    return serverError('INVALID_PATH', { message: 'The path must be of percent-encoded UTF-8' });
  const fault = headerFault(raw);
  if (fault !== undefined) return new HttpError(400, 'Invalid request', { message: fault });
  if (queryAt === -1 || routeOptions.config?.isPassedOn === true) return undefined;
  if (isDecodableQuery(url.slice(queryAt + 1))) return undefined;
  return new HttpError(400, 'Invalid request', { message: 'The query must be of percent-encoded UTF-8' });
}

function isBodyRead({ raw, routeOptions }: FastifyRequest): boolean {
  return routeOptions.config?.isPassedOn !== true && !hasNoBody(raw.headers);
}

/**
 * There is no such path, or not with this method. The message does not name it: the answer to HEAD
 * has the length of that to GET (RFC 9110, section 9.3.2).
 *
 * @returns the path's methods where OPTIONS asks for them.
 */
export function unrouted({ method, url }: FastifyRequest, pathMethods: PathMethods): HttpError | string {
  const path = pathOf(url);
  const methods = pathMethods.at(path);
  if (methods.length === 0) return serverError('PATH_NOT_FOUND', { message: `No such path: ${path}` });
  const allow = [...new Set([...methods, 'OPTIONS'])].sort().join(', ');
  if (method === 'OPTIONS') return allow;
  return serverError('METHOD_NOT_ALLOWED', { message: `${path} can be called with ${allow} only`, headers: { allow } });
}

/**
 * `curl -d ''` and many libraries name a type for a body of no bytes; a request without a body is
 * not refused for that.
 */
function hasNoBody({ 'content-length': length = '0', 'transfer-encoding': encoding }: IncomingHttpHeaders): boolean {
  return length === '0' && encoding === undefined;
}

/** What was asked for as it was written, without the query. @param url of a request line. */
export function pathOf(url = ''): string {
  const queryAt = url.indexOf('?');
  return queryAt === -1 ? url : url.slice(0, queryAt);
}

function internalError(): HttpError {
  return serverError('INTERNAL', { message: 'The request failed for a reason of ours' });
}

const LONGEST_TYPE = 64;

function unsupportedType({ 'content-type': type = 'none' }: IncomingHttpHeaders): HttpError {
  const message = `The Content-Type is ${type.slice(0, LONGEST_TYPE)}; send application/json, or where tokens are issued a form`;
  return serverError('UNSUPPORTED_TYPE', { message });
}

function invalidPart(
  request: FastifyRequest,
  faults: NonNullable<FastifyError['validation']>,
  part: SchemaErrorDataVar,
): HttpError {
  const message = describeSchemaFaults(faults, part, request.routeOptions.schema?.[part]);
  return new HttpError(400, 'Invalid request', { message, details: { fields: fieldFaults(request) } });
}

/**
 * Errors that Fastify raises before a route runs: malformed JSON, a body too large, a schema that
 * does not match.
 */
function fromFastify(error: unknown, request: FastifyRequest): HttpError | undefined {
  if (!(error instanceof Error)) return undefined;
  const { statusCode, validation, validationContext, message }: Partial<FastifyError> & Error = error;
  if (validation !== undefined) return invalidPart(request, validation, validationContext ?? 'body');
  if (statusCode === undefined || statusCode < 400 || statusCode >= 500) return undefined;
  if (statusCode === 415) return unsupportedType(request.headers);
  const isKnown = ([, { status }]: [string, { readonly status: number }]) => status === statusCode && status !== 400;
  const [code, known] = Object.entries(serverErrors).find(isKnown) ?? [];
  return new HttpError(statusCode, known?.error ?? 'Invalid request', { message, code });
}
