import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { codedErrorBody, type HttpError } from '../http/errors.ts';

/** Whether a request asks for a WebSocket. */
export function isWebSocketUpgrade({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket';
}

/** An answer in HTTP to an upgrade request. */
export interface UpgradeAnswer {
  readonly statusCode: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
}

/** Answers an upgrade request, and ends the connection. */
export function answerUpgrade(socket: Duplex, { statusCode, headers, body }: UpgradeAnswer): void {
  if (socket.destroyed) return;
  const fields = { ...headers, 'content-length': String(Buffer.byteLength(body)), connection: 'close' };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `HTTP/1.1 ${statusCode} ${STATUS_CODES[statusCode] ?? ''}\r\n${lines.join('')}\r\n`;
  socket.end(Buffer.concat([Buffer.from(head), Buffer.from(body)]), () => socket.destroy());
}

/**
 * Answers an upgrade request with an error and ends the connection.
 *
 * @param added header fields, beside those of the error.
 */
export function refuse(socket: Duplex, error: HttpError, added: Readonly<Record<string, string>> = {}): void {
  const { statusCode, headers } = error;
  answerUpgrade(socket, {
    statusCode,
    headers: {
      ...added,
      ...(statusCode === 401 ? { 'www-authenticate': 'Bearer' } : {}),
      ...headers,
      'content-type': 'application/json; charset=utf-8',
    },
    body: JSON.stringify(codedErrorBody(error)),
  });
}
