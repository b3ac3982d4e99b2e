import {
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import type { Socket } from 'node:net';
import { type TypeBoxTypeProvider, TypeBoxValidatorCompiler } from '@fastify/type-provider-typebox';
import {
  type FastifyBaseLogger,
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  fastify,
  LogController,
  type RawServerDefault,
} from 'fastify';
import { Histogram, type Registry } from 'prom-client';
import type { Logger } from '../log.ts';
import { type ErrorBody, HttpError } from './errors.ts';

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
}

/**
 * Longer than any proxy in front keeps idle connections (commonly 60 s): a proxy that reuses a connection just as the
 * server closes it answers 502.
 */
const KEEP_ALIVE_TIMEOUT_MS = 95_000;
const REQUEST_TIMEOUT_MS = 30_000;
const MAX_PARAM_LENGTH = 12_000;
const CLOSING_INTERVAL_MS = 50;
/** A client that does not read its answer must not keep the process from stopping in order. */
const CLOSING_LIMIT_MS = 8000;

/**
 * A Fastify application with what all Rollcall services share: no coercion of types, every error in the contract's shape,
 * request duration metrics, and time limits. It does not listen.
 */
export function createServer({ log, metrics, bodyLimit, mapError }: ServerOptions): App {
  const loggerInstance: FastifyBaseLogger = log;
  const app = fastify({
    loggerInstance,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    forceCloseConnections: 'idle',
    // What comes over an open connection while the server closes is still answered; the answer closes the connection.
    return503OnClosing: false,
    frameworkErrors(error, _request, reply) {
      answer(reply, fromFastify(error) ?? internalError());
    },
    clientErrorHandler: refuseMalformed,
  }).withTypeProvider<TypeBoxTypeProvider>();
  app.setValidatorCompiler(TypeBoxValidatorCompiler);
  const duration = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Duration of HTTP requests.',
    labelNames: ['method', 'route', 'code'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5],
    registers: [metrics],
  });
  app.addHook('onRequest', (request, _reply, done) => {
    if (hasNoBody(request.headers)) delete request.headers['content-type'];
    done();
  });
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.url ?? '<unknown>';
    duration.observe({ method: request.method, route, code: reply.statusCode }, reply.elapsedTime / 1000);
    request.log.debug({ method: request.method, route, code: reply.statusCode, ms: reply.elapsedTime }, 'request');
    done();
  });
  app.addHook('preClose', (done) => {
    endConnectionsOnceIdle(app.server);
    done();
  });
  app.setErrorHandler((error, request, reply) => {
    const known = error instanceof HttpError ? error : (mapError(error) ?? fromFastify(error));
    if (known !== undefined) return answer(reply, known);
    request.log.error({ err: error, method: request.method, route: request.routeOptions.url }, 'request failed');
    return answer(reply, internalError());
  });
  app.setNotFoundHandler((request, reply) =>
    answer(
      reply,
      new HttpError(404, 'Not found', { message: `No such path: ${request.method} ${pathOf(request.url)}` }),
    ),
  );
  return app;
}

/** A connection that is busy when the server begins to close would else be waited for until its client ends it. */
function endConnectionsOnceIdle(server: Server): void {
  const timer = setInterval(() => server.closeIdleConnections(), CLOSING_INTERVAL_MS);
  const limit = setTimeout(() => server.closeAllConnections(), CLOSING_LIMIT_MS);
  server.once('close', () => {
    clearInterval(timer);
    clearTimeout(limit);
  });
}

function answer(reply: FastifyReply, { statusCode, error, message, headers }: HttpError): FastifyReply {
  const body: ErrorBody = { error, message };
  return reply.status(statusCode).headers(headers).send(body);
}

/** `curl -d ''` and many libraries name a type for a body of no bytes; a request without a body is not refused for that. */
function hasNoBody({ 'content-length': length = '0', 'transfer-encoding': encoding }: IncomingHttpHeaders): boolean {
  return length === '0' && encoding === undefined;
}

function pathOf(url: string): string {
  return url.split('?', 1)[0] ?? url;
}

function internalError(): HttpError {
  return new HttpError(500, 'Internal error', { message: 'The request failed for a reason of ours' });
}

/** Errors that Fastify raises before a route runs: malformed JSON, a body too large, a schema that does not match. */
function fromFastify(error: unknown): HttpError | undefined {
  if (!(error instanceof Error)) return undefined;
  const { statusCode, validation, message }: Partial<FastifyError> & Error = error;
  if (validation !== undefined) return new HttpError(400, 'Invalid request', { message });
  if (statusCode === undefined || statusCode < 400 || statusCode >= 500) return undefined;
  return new HttpError(statusCode, statusCode === 413 ? 'Request too large' : 'Invalid request', { message });
}

/** Answers what is no HTTP request, which never gets as far as a route, and closes the connection. */
function refuseMalformed(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return;
  const status = MALFORMED.get(error.code ?? '') ?? 400;
  const body: ErrorBody = { error: 'Invalid request', message: STATUS_CODES[status] ?? 'Bad Request' };
  const text = JSON.stringify(body);
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(text)}`,
    'connection: close',
  ];
  if (socket.writable) socket.write(`${head.join('\r\n')}\r\n\r\n${text}`);
  socket.destroySoon();
}

const MALFORMED: ReadonlyMap<string, number> = new Map([
  ['ERR_HTTP_REQUEST_TIMEOUT', 408],
  ['HPE_HEADER_OVERFLOW', 431],
]);
