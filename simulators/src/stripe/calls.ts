import { randomUUID } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { bytesOf } from '../bodies.ts';
import type { IdempotencyKeys } from '../idempotency.ts';
import type { SimulationContext } from '../simulator.ts';
import { StripeError, type StripeErrorBody } from './errors.ts';
import { API_VERSION, eventNotification, isWanted } from './events.ts';
import { expand } from './expand.ts';
import type { StripeEvent } from './objects.ts';
import type { Work } from './payments.ts';
import type { Store } from './store.ts';

/** A call of the API, of which a handler makes an answer. */
export interface Call extends Work {
  /** Of the path; `''` where it has none. */
  readonly id: string;
  /** The form or the query, as text. */
  readonly parameters: string;
  /** Of the request, without its query. */
  readonly path: string;
}

/** @throws StripeError for an answer that is an error. */
type CallHandler = (call: Call) => unknown;

export interface CallsOptions {
  readonly secretKey: string;
  readonly store: Store;
  readonly keys: IdempotencyKeys;
  readonly context: SimulationContext;
}

type Method = 'GET' | 'POST' | 'DELETE';

/** Adds routes of the API: who calls, idempotency keys, errors, events and expansion are alike for all. */
export interface Calls {
  on(method: Method, path: string, handler: CallHandler): void;
}

const MAX_KEY_LENGTH = 255;

export function createCalls(app: FastifyInstance, options: CallsOptions): Calls {
  const { keys, secretKey } = options;
  return {
    on(method, url, handler) {
      app.route({
        method,
        url,
        handler: async (request, reply) => {
          const requestId = `req_${randomUUID().replaceAll('-', '')}`;
          reply.header('request-id', requestId).header('stripe-version', API_VERSION);
          if (!isAuthorized(request, secretKey)) return sendError(reply, UNAUTHORIZED);
          const key = method === 'POST' ? request.headers['idempotency-key'] : undefined;
          if (key === undefined) return await answer(request, reply, { handler, requestId, key: null });
          if (Array.isArray(key) || key.length > MAX_KEY_LENGTH) return sendError(reply, KEY_TOO_LONG);
          const claim = keys.claim(key, `${request.url}\n${textOf(request)}`);
          switch (claim.state) {
            case 'running':
              return sendError(reply, keyInUse());
            case 'other-request':
              return sendError(reply, otherParameters(key));
            case 'answered':
              reply.header('idempotent-replayed', 'true').code(claim.answer.status).type('application/json');
              return reply.send(claim.answer.body);
            case 'new':
              return await answer(request, reply, { handler, requestId, key });
            default:
              return claim satisfies never;
          }
        },
      });
    },
  };

  async function answer(
    request: FastifyRequest,
    reply: FastifyReply,
    { handler, requestId, key }: { handler: CallHandler; requestId: string; key: string | null },
  ): Promise<FastifyReply> {
    const work = beginWork(request, options, { id: requestId, idempotency_key: key });
    const { status, body } = outcomeOf(() => handler(callOf(request, work)), request, options.store);
    const text = JSON.stringify(body);
    // What was refused for its parameters may be sent again, mended, with the same key.
    const isKept = status < 400 || status === 402;
    if (key !== null && !isKept) keys.release(key);
    await work.tell();
    if (key !== null && isKept) keys.keep(key, { status, body: text });
    return reply.code(status).type('application/json').send(text);
  }
}

/** Work whose events are told of once it is done. */
export function beginWork(
  request: FastifyRequest,
  { store, context }: Pick<CallsOptions, 'store' | 'context'>,
  cause: StripeEvent['request'] = { id: null, idempotency_key: null },
): Work & { readonly tell: () => Promise<void> } {
  const events: StripeEvent[] = [];
  return {
    store,
    outcomeOf: context.outcomeOf,
    emit(type, object) {
      const details = { type, api_version: API_VERSION, pending_webhooks: 1, request: cause, data: { object } };
      events.push(store.put({ ...store.base('event', 'evt'), ...details }));
    },
    async tell() {
      const endpoints = store.all('webhook_endpoint');
      const sequence = events.flatMap((event) =>
        endpoints
          .filter((endpoint) => isWanted(endpoint, event.type))
          .map((endpoint) => eventNotification(endpoint, store.secrets.get(endpoint.id) ?? '', event)),
      );
      if (sequence.length > 0) await context.notify(request, sequence);
    },
  };
}

/** The body of an answer with an error. */
export function errorAnswer(body: StripeErrorBody): { readonly error: StripeErrorBody } {
  return { error: body };
}

function callOf(request: FastifyRequest, work: Work): Call {
  const { params, method, url } = request;
  const [path = '', query = ''] = url.split('?', 2);
  const id = typeof params === 'object' && params !== null && 'id' in params ? String(params.id) : '';
  return { ...work, id, path, parameters: method === 'GET' ? query : textOf(request) };
}

function outcomeOf(act: () => unknown, request: FastifyRequest, store: Store): { status: number; body: unknown } {
  try {
    return { status: 200, body: expand(act(), expansionsOf(request), store) };
  } catch (error) {
    if (!(error instanceof StripeError)) throw error;
    return { status: error.status, body: errorAnswer(error.body) };
  }
}

function expansionsOf(request: FastifyRequest): readonly string[] {
  const [, query = ''] = request.url.split('?', 2);
  const parameters = new URLSearchParams(request.method === 'GET' ? query : textOf(request));
  return [...parameters].filter(([name]) => /^expand\[\d*\]$/.test(name)).map(([, path]) => path);
}

/** `Bearer`, as the client sends it, or the user name of `Basic`. */
function isAuthorized({ headers }: FastifyRequest, secretKey: string): boolean {
  const [scheme = '', credentials = ''] = (headers.authorization ?? '').split(' ', 2);
  const key = /^basic$/i.test(scheme) ? Buffer.from(credentials, 'base64').toString().split(':')[0] : credentials;
  return key === secretKey;
}

function textOf(request: FastifyRequest): string {
  return bytesOf(request).toString('utf8');
}

function sendError(reply: FastifyReply, { status, body }: StripeError): FastifyReply {
  return reply.code(status).send(errorAnswer(body));
}

const UNAUTHORIZED = new StripeError(401, {
  type: 'invalid_request_error',
  message: 'Invalid API Key provided.',
});

const KEY_TOO_LONG = new StripeError(400, {
  type: 'invalid_request_error',
  message: `Idempotency-Key must have at most ${MAX_KEY_LENGTH} characters.`,
});

function keyInUse(): StripeError {
  return new StripeError(409, {
    type: 'idempotency_error',
    code: 'idempotency_key_in_use',
    message: 'There is currently another in-progress request using this Idempotency Key.',
  });
}

function otherParameters(key: string): StripeError {
  return new StripeError(400, {
    type: 'idempotency_error',
    message:
      'Keys for idempotent requests can only be used with the same parameters they were first used with. ' +
      `Try using a key other than '${key}' if you meant to execute a different request.`,
  });
}
