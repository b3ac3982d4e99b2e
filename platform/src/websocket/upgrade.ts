import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { codedErrorBody, type HttpError } from '../http/errors.ts';

/** Whether a request asks for a WebSocket. */
export function isWebSocketUpgrade({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket';
}

/** The whole of an HTTP answer, after which the connection ends. */
function renderRefusal(error: HttpError, added: Readonly<Record<string, string>>): string {
  const { statusCode, headers } = error;
  const body = JSON.stringify(codedErrorBody(error));
  const fields = {
    ...added,
    ...(statusCode === 401 ? { 'www-authenticate': 'Bearer' } : {}),
    ...headers,
    'content-type': 'application/json; charset=utf-8',
    'content-length': String(Buffer.byteLength(body)),
    connection: 'close',
  };
  const head = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${statusCode} ${STATUS_CODES[statusCode] ?? ''}\r\n${head.join('')}\r\n${body}`;
}

/**
 * Answers an upgrade request with an error and ends the connection.
 *
 * @param added header fields, beside those of the error.
 */
export function refuse(socket: Duplex, error: HttpError, added: Readonly<Record<string, string>> = {}): void {
  if (socket.destroyed) return;
  socket.end(renderRefusal(error, added), () => socket.destroy());
}
