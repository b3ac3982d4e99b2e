import type { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { Clock } from '../clock.ts';
import { errorMessage } from '../errors.ts';
import type { Environment } from '../process/config.ts';
import { backoffMs, sleep } from '../retry.ts';
import { accessFromEnvironment, accessFromFile, type Credentials, type KubeAccess } from './access.ts';
import { createCredentialSource } from './credentials.ts';
import { type ApiStatus, KubeApiError, KubeUnreachableError, unreachable } from './errors.ts';
import { createTransports } from './transport.ts';

/** Requests have one of their own; undici's do not count the wait for a socket. */
const NO_TIMEOUTS = { headersTimeout: 0, bodyTimeout: 0 };
const MAX_RETRY_AFTER_TRIES = 5;
/** What is added to the wait that the server asked for, so that not all return together. */
const RETRY_SPREAD = { baseMs: 50, maxMs: 1000 };

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

export interface KubeRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Path of the API, such as `/api/v1/namespaces/default/services`. */
  readonly path: string;
  readonly query?: Query;
  readonly body?: unknown;
  /** Of the body; `application/json` unless given. */
  readonly contentType?: string;
  readonly signal?: AbortSignal;
}

/** An authenticated connection to one API server. */
export interface KubeConnection {
  /** The namespace of the kubeconfig's context or of the service account, else `default`. */
  readonly namespace: string;
  /**
   * Sends a request and parses the JSON answer. A 429 or 503 with Retry-After is waited out and
   * sent again, within the connection's time limit: such a request was not carried out.
   *
   * @throws KubeApiError when the server refuses, KubeUnreachableError when there is no answer in
   * time.
   */
  request<T>(request: KubeRequest): Promise<T>;
  /**
   * Opens a streaming GET (a watch). The caller ends it by its signal.
   *
   * @throws as {@link request}, for everything up to the response's headers.
   */
  stream(path: string, query: Query, signal: AbortSignal): Promise<Readable>;
  /** Lets requests finish, ends streams. */
  close(): Promise<void>;
}

export interface ConnectionOptions {
  readonly clock: Clock;
  /**
   * A request that has no complete answer by then, waiting for a socket included, fails as
   * unreachable.
   */
  readonly requestTimeoutMs: number;
  /** Most sockets that requests (not watches) use at once. */
  readonly maxSockets: number;
  /**
   * The owner of the fields that are written, unless a request names one; without it the API server
   * calls it `unknown`.
   */
  readonly fieldManager?: string;
  /**
   * Called after every answer or failure, for `rest_client_requests_total`; `host` is that of the
   * API server.
   */
  readonly onRequest?: (method: string, code: string, host: string) => void;
}

/** Connects as {@link accessFromEnvironment} finds the API server. */
export async function connect(
  options: ConnectionOptions & { readonly environment: Environment },
): Promise<KubeConnection> {
  return connectTo(await accessFromEnvironment(options.environment), options);
}

/** Connects by the kubeconfig file at `path`. */
export async function connectByFile(path: string, options: ConnectionOptions): Promise<KubeConnection> {
  return connectTo(await accessFromFile(path), options);
}

interface Answer {
  readonly statusCode: number;
  readonly headers: Dispatcher.ResponseData['headers'];
  readonly text: string;
}

async function connectTo(access: KubeAccess, options: ConnectionOptions): Promise<KubeConnection> {
  const { clock, requestTimeoutMs, maxSockets, fieldManager } = options;
  const { origin, pathname, host } = new URL(access.server);
  const basePath = pathname.replace(/\/$/, '');
  const source = await createCredentialSource(access, clock);
  const transports = createTransports(access, { connectTimeoutMs: requestTimeoutMs, maxSockets });

  const onRequest = (method: string, code: string) => options.onRequest?.(method, code, host);

  async function send(request: KubeRequest, credentials: Credentials, deadline: number): Promise<Answer> {
    const { method, body, signal } = request;
    const owner = method === 'GET' || method === 'DELETE' ? {} : { fieldManager };
    const headers: Record<string, string> = { accept: 'application/json', ...credentials.headers };
    if (body !== undefined) headers['content-type'] = request.contentType ?? 'application/json';
    const within = limited(deadline - clock.monotonicMs(), signal);
    try {
      const answering = transports.get(credentials).requests.request({
        origin,
        method,
        path: basePath + request.path + queryString({ ...owner, ...request.query }),
        headers,
        body: body === undefined ? null : JSON.stringify(body),
        // A DELETE with a body would cost its socket, and every one a TLS handshake: undici treats
        // it as a mistake.
        reset: false,
        signal: within,
        ...NO_TIMEOUTS,
      });
      const { statusCode, headers: fields, body: content } = await untilAborted(answering, within);
      const answer = { statusCode, headers: fields, text: await content.text() };
      onRequest(method, String(answer.statusCode));
      return answer;
    } catch (error) {
      onRequest(method, '<error>');
      throw unreached(error, within);
    }
  }

  return {
    namespace: access.namespace,
    async request<T>(request: KubeRequest): Promise<T> {
      const deadline = clock.monotonicMs() + requestTimeoutMs;
      for (let tries = 0; ; tries += 1) {
        const credentials = await source.get();
        const answer = await send(request, credentials, deadline);
        if (isSuccess(answer.statusCode)) {
          const parsed: T = parseAnswer(answer.text);
          return parsed;
        }
        const error = toApiError(answer);
        const refused = error.code === 401 && tries === 0;
        const again = refused
          ? await source.renew(credentials)
          : await waitForRetry(error, tries, { clock, deadline, signal: request.signal });
        if (!again) throw error;
      }
    },
    async stream(path, query, signal) {
      const credentials = await source.get();
      let response: Dispatcher.ResponseData;
      try {
        const opening = transports.get(credentials).streams.request({
          origin,
          method: 'GET',
          path: basePath + path + queryString(query),
          headers: { accept: 'application/json', ...credentials.headers },
          signal,
          headersTimeout: requestTimeoutMs,
          bodyTimeout: 0,
        });
        response = await untilAborted(opening, signal);
      } catch (error) {
        onRequest('WATCH', '<error>');
        throw unreached(error, signal);
      }
      onRequest('WATCH', String(response.statusCode));
      if (isSuccess(response.statusCode)) return response.body;
      if (response.statusCode === 401) await source.renew(credentials);
      const { statusCode, headers, body } = response;
      throw toApiError({ statusCode, headers, text: await body.text().catch(() => '') });
    },
    close: () => transports.close(),
  };
}

interface RetryContext {
  readonly clock: Clock;
  readonly deadline: number;
  readonly signal: AbortSignal | undefined;
}

/** Waits as the server asked to. @returns whether the request may be sent again. */
async function waitForRetry(error: KubeApiError, tries: number, context: RetryContext): Promise<boolean> {
  const asked = error.code === 429 || error.code === 503 ? error.retryAfterMs : undefined;
  if (asked === undefined || tries >= MAX_RETRY_AFTER_TRIES) return false;
  const waitMs = asked + backoffMs(tries, RETRY_SPREAD);
  return context.clock.monotonicMs() + waitMs < context.deadline && (await sleep(waitMs, context.signal));
}

function isSuccess(statusCode: number): boolean {
  return statusCode >= 200 && statusCode < 300;
}

function queryString(query: Query | undefined): string {
  if (query === undefined) return '';
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, String(value));
  const text = parameters.toString();
  return text === '' ? '' : `?${text}`;
}

/** The fault is not repeated: a parser quotes from the text, which may be that of a Secret. */
function parseAnswer(text: string): ReturnType<typeof JSON.parse> {
  try {
    return JSON.parse(text);
  } catch {
    throw unreachable('the answer is not JSON');
  }
}

function toApiError({ statusCode, headers, text }: Answer): KubeApiError {
  let status: ApiStatus = {};
  try {
    const parsed: ApiStatus | null = JSON.parse(text);
    if (typeof parsed === 'object' && parsed !== null) status = parsed;
  } catch {
    // A proxy in between answered, or the answer broke off: the HTTP status has to do.
  }
  const header = Number(headers['retry-after']);
  const seconds = Number.isFinite(header) ? header : status.details?.retryAfterSeconds;
  return new KubeApiError(statusCode, status, seconds === undefined ? undefined : seconds * 1000);
}

/** @returns what aborts when the time is over, or with `signal`. */
function limited(ms: number, signal: AbortSignal | undefined): AbortSignal {
  const timeout = AbortSignal.timeout(Math.max(0, Math.ceil(ms)));
  return signal === undefined ? timeout : AbortSignal.any([timeout, signal]);
}

function unreached(error: unknown, { aborted, reason }: AbortSignal): KubeUnreachableError {
  if (error instanceof KubeUnreachableError) return error;
  if (!aborted) return unreachable(errorMessage(error), error);
  const isLate = reason instanceof Error && reason.name === 'TimeoutError';
  return unreachable(isLate ? 'no answer in time' : 'the request was aborted');
}

/**
 * undici rejects an aborted request only once a socket is open for it, which behind a dead network
 * lasts long.
 */
async function untilAborted<T>(pending: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(signal.reason);
  if (signal.aborted) onAbort();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await Promise.race([pending, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
