import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { LookupFunction } from 'node:net';
import { isUnsent } from '@rollcall/platform/outbound/exchange.ts';
import { WebSocket } from 'ws';
import { GatewayError } from '../../errors.ts';
import { always } from '../../upstream/discovery/addresses.ts';
import type { Endpoint } from '../../upstream/discovery/endpoint.ts';
import type { Target } from '../../upstream/discovery/targets.ts';
import type { RawHeaders } from '../rest/headers.ts';
import { outcomeOf } from '../rest/upstream-failure.ts';
import { limits } from './limits.ts';

export interface ServiceSocketDeps {
  /** Of host names, for connections. */
  readonly lookup: LookupFunction;
  /** Until a service has answered the handshake. */
  readonly timeoutMs: number;
}

/** What is asked of a service. */
export interface ServiceUpgrade {
  readonly target: Target;
  /** Path below the target's registered URL, and query. */
  readonly path: string;
  readonly protocols: readonly string[];
  readonly headers: RawHeaders;
}

/** The service has answered in HTTP instead. */
export class AnsweredError extends Error {
  readonly status: number;
  readonly type: string;
  readonly body: Buffer;

  constructor(status: number, type: string, body: Buffer) {
    super(`The service answered the upgrade with ${status}`);
    this.name = 'AnsweredError';
    this.status = status;
    this.type = type;
    this.body = body;
  }
}

const MOST_ATTEMPTS = 3;
/** Of an answer instead of a WebSocket. */
const MOST_BYTES = 64 * 1024;
const CLIENT = { perMessageDeflate: false, closeTimeout: limits.closeTimeoutMs } as const;

/**
 * Opens a WebSocket to a service; at another of its endpoints where one takes no connection.
 *
 * @throws AnsweredError; GatewayError where it cannot be had.
 */
export async function openServiceSocket(deps: ServiceSocketDeps, upgrade: ServiceUpgrade): Promise<WebSocket> {
  const { service, endpoints } = upgrade.target;
  let failed: Endpoint | undefined;
  for (let attempts = 1; ; attempts += 1) {
    await endpoints.refresh();
    const endpoint = endpoints.acquire(failed);
    if (endpoint === undefined) throw new GatewayError('UPSTREAM_UNAVAILABLE', { details: { service } });
    try {
      return await openAt(endpoint, deps, upgrade);
    } catch (error) {
      if (error instanceof AnsweredError) throw error;
      const { code, message } = outcomeOf(error);
      if (!isUnsent(error) || attempts >= MOST_ATTEMPTS)
        throw new GatewayError(code, { message, details: { service } });
      endpoints.suspect(endpoint);
      failed = endpoint;
    }
  }
}

/** The endpoint is busy with it only until it is open: WebSockets stay, and would leave no room for requests. */
async function openAt(endpoint: Endpoint, deps: ServiceSocketDeps, upgrade: ServiceUpgrade): Promise<WebSocket> {
  const { origin, basePath, address, breaker } = endpoint;
  endpoint.underWay += 1;
  const socket = new WebSocket(`${origin.replace(/^http/, 'ws')}${basePath}${upgrade.path}`, [...upgrade.protocols], {
    ...CLIENT,
    headers: byName(upgrade.headers),
    lookup: address === undefined ? deps.lookup : always(address),
    handshakeTimeout: deps.timeoutMs,
    maxPayload: limits.serviceMessageBytes,
  });
  const answered = Promise.withResolvers<never>();
  answered.promise.catch(() => undefined);
  socket.on('unexpected-response', (_request, response) => {
    void read(response).then(answered.reject, answered.reject);
  });
  // What comes with the handshake is for who asked.
  socket.once('open', () => socket.pause());
  try {
    await Promise.race([once(socket, 'open'), answered.promise]);
    breaker.succeeded();
    return socket;
  } catch (error) {
    socket.on('error', () => undefined);
    if (error instanceof AnsweredError) breaker.succeeded();
    else breaker.failed();
    socket.terminate();
    throw error;
  } finally {
    endpoint.underWay -= 1;
  }
}

async function read(response: IncomingMessage): Promise<AnsweredError> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response) {
    if (!Buffer.isBuffer(chunk)) continue;
    chunks.push(chunk);
    size += chunk.length;
    if (size > MOST_BYTES) break;
  }
  const { statusCode = 502, headers } = response;
  const type = headers['content-type'] ?? 'text/plain';
  return new AnsweredError(statusCode, type, Buffer.concat(chunks).subarray(0, MOST_BYTES));
}

/** The handshake has fields of its own. */
function byName(raw: RawHeaders): Record<string, string[]> {
  const headers: Record<string, string[]> = {};
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const [name = '', value = ''] = [raw[index], raw[index + 1]];
    if (!name.startsWith('sec-websocket-')) (headers[name] ??= []).push(value);
  }
  return headers;
}
