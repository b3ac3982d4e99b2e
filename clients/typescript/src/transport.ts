import { projectedToken } from './projected-token.ts';
import { errorFromAnswer, RegistryError, unreachable } from './registry-error.ts';
import { apiUrl, createServers } from './servers.ts';

/**
 * A bearer token, or where to get the current one; asked for every request. Undefined: without.
 *
 * @public
 */
export type TokenSource = string | (() => string | undefined | Promise<string | undefined>);

/**
 * As much of `fetch` as is used, so that undici's passes for it, too.
 *
 * @public
 */
export type Fetch = (url: string, request: FetchRequest) => Promise<Response>;

/** @public */
export interface FetchRequest {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body: string | null;
  readonly signal: AbortSignal;
  readonly cache: 'no-store';
}

/** Where the registry is and how to speak to it. */
export interface ConnectionOptions {
  /**
   * Base URLs of interchangeable registries, such as `http://rollcall-registry:3001`, or
   * `https://api.example.com/api/v1/registry` behind the gateway. The first that answers is used
   * until it fails.
   */
  readonly servers: string | readonly string[];
  /** By default the one of {@link projectedToken}, where there is one. */
  readonly token?: TokenSource | undefined;
  /** Longest wait for an answer of one registry, in milliseconds. Default 5,000. */
  readonly timeoutMs?: number | undefined;
  /** Replaces the global fetch, for example to use an HTTP proxy or client certificates. */
  readonly fetch?: Fetch | undefined;
}

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** Below `/api/v1`, already encoded. */
  readonly path: string;
  readonly body?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Makes headers that are good for one attempt. */
  readonly sign?: (() => Promise<Readonly<Record<string, string>>>) | undefined;
  /**
   * Whether doing it twice is as good as once, so that another registry may be asked after an
   * unclear failure.
   */
  readonly repeatable: boolean;
  readonly signal?: AbortSignal | undefined;
}

interface ApiAnswer {
  readonly status: number;
  readonly text: string;
  readonly server: string;
}

/** An answer whose body has no end. */
interface ApiStream {
  readonly body: ReadableStream<Uint8Array>;
  readonly server: string;
  /** Ends the connection; a pending read of the body rejects with the reason. */
  close(reason: unknown): void;
}

/** Sends requests to whichever of the registries answers. */
export interface Transport {
  /**
   * @returns the answer, whatever its status.
   * @throws RegistryError without status where no registry answered; the signal's reason where that
   * aborted.
   */
  send(request: ApiRequest): Promise<ApiAnswer>;
  /**
   * @returns a 200 answer's body as it comes; the time limit holds for its beginning only.
   * @throws as {@link send}; RegistryError with status for any other answer.
   */
  open(request: ApiRequest): Promise<ApiStream>;
  /** Asks this registry last from now on: something it said or left unsaid was wrong. */
  distrust(server: string): void;
}

const DEFAULT_TIMEOUT_MS = 5000;

/**
 * Answers that another registry may better: it, or the proxy in front of it, cannot reach what it
 * needs.
 */
const UNAVAILABLE = new Set([502, 503, 504]);

/**
 * Failures before the request was sent, so that even a call that must not be repeated may go to
 * another registry.
 */
const NEVER_SENT = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH']);

/**
 * @returns the token.
 * @throws TypeError where it cannot stand in a header. The message does not hold it, as that of
 * fetch would.
 */
export function checkToken(token: string): string {
  if (!/^[\x21-\x7e]+$/.test(token)) throw new TypeError('the token is empty or holds characters that no token has');
  return token;
}

/** @throws TypeError where a URL or the token is unusable. */
export function createTransport(options: ConnectionOptions): Transport {
  const { token = projectedToken(), timeoutMs = DEFAULT_TIMEOUT_MS, fetch = globalThis.fetch } = options;
  const servers = createServers(options.servers);
  if (typeof token === 'string') checkToken(token);

  async function start(server: string, request: ApiRequest, limit: AbortSignal): Promise<Response> {
    const headers = await headersOf(request, token);
    try {
      return await fetch(`${apiUrl(server)}${request.path}`, {
        method: request.method,
        headers,
        body: request.body ?? null,
        signal: request.signal === undefined ? limit : AbortSignal.any([limit, request.signal]),
        cache: 'no-store',
      });
    } catch (error) {
      throw failure(server, error, request.signal);
    }
  }

  /** Tries the registries in turn until one gives an answer that is worth having. */
  async function firstGood(
    request: ApiRequest,
    attempt: (server: string) => Promise<ApiAnswer & { readonly stream?: ApiStream }>,
  ): Promise<ApiAnswer & { readonly stream?: ApiStream }> {
    let last: { answer: ApiAnswer } | { error: unknown } = { error: new TypeError('no registry') };
    for (const server of servers.inOrder()) {
      try {
        const answer = await attempt(server);
        if (!UNAVAILABLE.has(answer.status) || !request.repeatable) {
          servers.prefer(server);
          return answer;
        }
        last = { answer };
      } catch (error) {
        last = { error };
      }
      servers.distrust(server);
      if ('error' in last && !mayAskAnother(last.error, request)) break;
    }
    if ('error' in last) throw last.error;
    return last.answer;
  }

  return {
    send: (request) =>
      firstGood(request, async (server) => {
        const response = await start(server, request, AbortSignal.timeout(timeoutMs));
        return { status: response.status, text: await readText(response, server, request.signal), server };
      }),

    async open(request) {
      const opened = await firstGood(request, async (server) => {
        const closing = new AbortController();
        const timer = setTimeout(() => closing.abort(new Error(`no answer within ${timeoutMs} ms`)), timeoutMs);
        try {
          const response = await start(server, request, closing.signal);
          const { status } = response;
          if (status === 200) return { status, text: '', server, stream: openStream(response, server, closing) };
          const text = await readText(response, server, request.signal);
          closing.abort();
          return { status, text, server };
        } catch (error) {
          closing.abort(error);
          throw error;
        } finally {
          clearTimeout(timer);
        }
      });
      if (opened.stream === undefined) throw errorFromAnswer(opened.status, opened.text, opened.server);
      return opened.stream;
    },

    distrust: (server) => servers.distrust(server),
  };
}

async function headersOf(request: ApiRequest, token: TokenSource): Promise<Record<string, string>> {
  const headers: Record<string, string> = {
    accept: 'application/json',
    ...request.headers,
    ...(await request.sign?.()),
  };
  if (request.body !== undefined) headers['content-type'] = 'application/json';
  const bearer = typeof token === 'function' ? await token() : token;
  if (bearer !== undefined) headers['authorization'] = `Bearer ${checkToken(bearer)}`;
  return headers;
}

function isEndless({ headers }: Response): boolean {
  return headers.get('content-type')?.startsWith('text/event-stream') === true;
}

function openStream(response: Response, server: string, closing: AbortController): ApiStream {
  const { body } = response;
  if (body === null || !isEndless(response)) {
    const message = `${server} did not answer with an event stream: is it a registry?`;
    throw new RegistryError(message, { error: 'Unexpected answer', server, status: response.status });
  }
  return { body, server, close: (reason) => closing.abort(reason) };
}

async function readText(response: Response, server: string, signal: AbortSignal | undefined): Promise<string> {
  try {
    if (isEndless(response)) {
      await response.body?.cancel();
      return '';
    }
    return await response.text();
  } catch (error) {
    throw failure(server, error, signal);
  }
}

function failure(server: string, error: unknown, signal: AbortSignal | undefined): unknown {
  return signal?.aborted === true ? signal.reason : unreachable(server, error);
}

function mayAskAnother(error: unknown, { repeatable, signal }: ApiRequest): boolean {
  if (signal?.aborted === true || !(error instanceof RegistryError)) return false;
  return repeatable || NEVER_SENT.has(innermostCode(error));
}

function innermostCode(error: Error): string {
  if ('code' in error && typeof error.code === 'string') return error.code;
  return error.cause instanceof Error ? innermostCode(error.cause) : '';
}
