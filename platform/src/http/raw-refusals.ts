import type { IncomingMessage, ServerResponse } from 'node:http';
import { maxHeaderSize, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { HttpError, type RenderError, serverError } from './errors.ts';
import { REQUEST_ID_HEADER, requestIdOf } from './request-id.ts';
import type { App } from './server.ts';

/** What is answered past all routes and hooks. */
export interface RawRefusal {
  readonly error: HttpError;
  /** Undefined: what came is none. */
  readonly request: IncomingMessage | undefined;
  readonly requestId: string;
}

export interface RawRefusalOptions {
  readonly renderError: RenderError;
  /** Called with each. */
  readonly onRawRefusal: (refusal: RawRefusal) => void;
}

/**
 * Answers what never becomes a request of a route: what is no HTTP, what does not come in time, and
 * requests for a tunnel.
 */
export interface RawRefusals {
  /** For Fastify's `clientErrorHandler`. */
  readonly onClientError: (error: NodeJS.ErrnoException, socket: Socket) => void;
  /** Watches a server for the rest. */
  readonly watch: (server: App['server']) => void;
}

export function createRawRefusals({ renderError, onRawRefusal }: RawRefusalOptions): RawRefusals {
  /** The answer to the last request that has begun to come over a connection. */
  const lastAnswers = new WeakMap<Socket, ServerResponse>();
  return {
    onClientError(error, socket) {
      const reaction = reactionFor(lastAnswers.get(socket), socket);
      if (reaction === 'reset') socket.resetAndDestroy();
      else if (reaction === 'end') socket.destroySoon();
      else if (error.code !== 'ECONNRESET') refuse(socket, malformed(error), undefined);
    },
    watch(server) {
      // Fastify calls no hook for a path that cannot be decoded.
      server.on('request', ({ socket }, response) => lastAnswers.set(socket, response));
      // Node closes the connection where nobody listens.
      server.on('connect', (request, socket: Socket) => {
        socket.on('error', () => socket.destroy());
        if (reactionFor(lastAnswers.get(socket), socket) === 'refuse') refuse(socket, noTunnel(), request);
        else socket.resetAndDestroy();
      });
    },
  };

  /** Answers, and closes the connection. */
  function refuse(socket: Socket, error: HttpError, request: IncomingMessage | undefined): void {
    if (socket.destroyed) return;
    const requestId = requestIdOf(request?.headers[REQUEST_ID_HEADER]);
    onRawRefusal({ error, request, requestId });
    const text = JSON.stringify(renderError(error));
    const fields = {
      [REQUEST_ID_HEADER]: requestId,
      ...error.headers,
      'content-type': 'application/json; charset=utf-8',
      'content-length': String(Buffer.byteLength(text)),
      connection: 'close',
    };
    const head = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
    const line = `HTTP/1.1 ${error.statusCode} ${STATUS_CODES[error.statusCode] ?? ''}`;
    if (socket.writable) socket.write(`${line}\r\n${head.join('')}\r\n${text}`);
    socket.destroySoon();
  }
}

/**
 * What becomes of a connection with an invalid request. A refusal must not be seen as more of
 * another answer, as the answer that an earlier request still waits for, or as a second one.
 *
 * @param last the answer to the last request that has begun to come. Only one to which no other is
 * ahead has the socket.
 */
function reactionFor(last: ServerResponse | undefined, socket: Socket): 'refuse' | 'end' | 'reset' {
  if (last === undefined) return 'refuse';
  if (last.socket !== socket && !last.writableFinished) return 'reset';
  // What is wrong follows it.
  if (last.req.complete) return last.writableEnded ? 'refuse' : 'reset';
  // What is wrong is in its body.
  if (!last.headersSent) return 'refuse';
  return last.writableEnded ? 'end' : 'reset';
}

function malformed(error: NodeJS.ErrnoException): HttpError {
  if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return serverError('REQUEST_TIMEOUT', { message: 'The request did not come in full within its time' });
  }
  if (error.code === 'HPE_HEADER_OVERFLOW') {
    return serverError('HEADERS_TOO_LARGE', { message: `The header fields have more than ${maxHeaderSize} bytes` });
  }
  const reason = 'reason' in error && typeof error.reason === 'string' ? error.reason : error.message;
  return new HttpError(400, 'Invalid request', { message: `What came is no request of HTTP/1.1: ${reason}` });
}

function noTunnel(): HttpError {
  return serverError('NOT_IMPLEMENTED', {
    message: 'The server makes no tunnels: send the request itself, not CONNECT',
  });
}
