import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Certificates } from '@rollcall/local/certificates.ts';

/** How one request is answered. What it returns is not waited for. */
export type Answerer = (request: IncomingMessage, response: ServerResponse) => unknown;

interface Seen {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
}

/** An https server with artifacts. */
export interface ArtifactServer extends AsyncDisposable {
  readonly origin: string;
  readonly port: number;
  readonly requests: readonly Seen[];
  /** All connections so far, TLS or not. */
  readonly connections: number;
  /** How requests are answered, in their order; the last one for all that follow. */
  answer(...answers: readonly Answerer[]): void;
  /** Resets the connection that this answer goes over. */
  reset(response: ServerResponse): void;
}

export async function startArtifactServer(certificates: Certificates): Promise<ArtifactServer> {
  const requests: Seen[] = [];
  let connections = 0;
  let answers: Answerer[] = [];
  const [cert, key] = await Promise.all([readFile(certificates.serverCertificate), readFile(certificates.serverKey)]);
  const server = createServer({ cert, key }, (request, response) => {
    requests.push({ path: request.url ?? '', headers: request.headers });
    const answer = answers.length > 1 ? answers.shift() : answers[0];
    if (answer === undefined) response.writeHead(404).end();
    else answer(request, response);
  });
  const sockets = new Map<number | undefined, Socket>();
  server.on('connection', (socket: Socket) => {
    connections += 1;
    sockets.set(socket.remotePort, socket);
  });
  // Whoever breaks a handshake off, as the tests make clients do, must not end this process.
  server.on('tlsClientError', () => undefined);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The artifact server has no port');
  return {
    origin: `https://127.0.0.1:${address.port}`,
    port: address.port,
    requests,
    get connections() {
      return connections;
    },
    answer: (...next) => {
      answers = [...next];
    },
    reset: (response) => sockets.get(response.socket?.remotePort)?.resetAndDestroy(),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** To be sent. */
export type Headers = Readonly<Record<string, string | number>>;

/** All of it. */
export function whole(content: Buffer, headers: Headers = {}): Answerer {
  return (_request, response) => {
    response.writeHead(200, { 'content-length': content.length, ...headers }).end(content);
  };
}

/** All of it, without saying how much that is. */
export function chunked(content: Buffer): Answerer {
  return (_request, response) => {
    response.writeHead(200, { 'transfer-encoding': 'chunked' });
    response.end(content);
  };
}

/** Promises all of it, sends so many bytes, and then what `next` does, by default nothing. */
export function stall(
  content: Buffer,
  bytes: number,
  next: (response: ServerResponse) => unknown = () => {},
): Answerer {
  return (_request, response) => {
    response.writeHead(200, { 'content-length': content.length, etag: '"stalled"' });
    response.write(content.subarray(0, bytes));
    next(response);
  };
}

/**
 * What a file server does that knows ranges: the rest if the client has the beginning of this file,
 * else all.
 */
export function ranged(content: Buffer, etag: string): Answerer {
  return (request, response) => {
    const start = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? Number.NaN);
    if (Number.isNaN(start) || request.headers['if-range'] !== etag) return whole(content, { etag })(request, response);
    return part(
      content,
      { etag, 'content-range': `bytes ${start}-${content.length - 1}/${content.length}` },
      start,
    )(request, response);
  };
}

/** 206 with the bytes from there on, and these headers. */
export function part(content: Buffer, headers: Headers, start: number): Answerer {
  return (_request, response) => {
    const rest = content.subarray(start);
    response.writeHead(206, { 'content-length': rest.length, ...headers }).end(rest);
  };
}

export function status(code: number, headers: Headers = {}): Answerer {
  return (_request, response) => {
    response.writeHead(code, headers).end('x'.repeat(1000));
  };
}

export function redirect(location: string, code = 302): Answerer {
  return status(code, { location });
}
