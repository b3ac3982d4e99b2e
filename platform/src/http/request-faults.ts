import type { IncomingMessage } from 'node:http';
import { HttpError, serverError } from './errors.ts';
import { targetFault } from './request-target.ts';

/**
 * What is wrong with the frame of a request, whatever its path: a version that is not spoken here,
 * a target that is none (RFC 9112, section 3.2), or a coding of the body that nobody here undoes
 * (section 6.1).
 *
 * @returns undefined: nothing.
 */
export function requestFault(request: IncomingMessage): HttpError | undefined {
  const { url = '', headers, httpVersion, httpVersionMinor } = request;
  if (!isHttp1(request)) {
    const message = `This port does not speak HTTP/${httpVersion}: send the request line with HTTP/1.1`;
    return serverError('VERSION_NOT_SUPPORTED', { message, headers: { connection: 'close' } });
  }
  const fault = targetFault(url);
  if (fault !== undefined) return new HttpError(400, 'Invalid request', { message: fault });
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && httpVersionMinor === 0) {
    const message = 'HTTP/1.0 has no Transfer-Encoding: send a Content-Length, or use HTTP/1.1';
    return new HttpError(400, 'Invalid request', { message, headers: { connection: 'close' } });
  }
  if (coding !== undefined && !isChunkedAlone(coding)) {
    const message =
      'The only transfer coding that the server undoes is chunked: send compressed content with Content-Encoding';
    return serverError('NOT_IMPLEMENTED', { message, headers: { connection: 'close' } });
  }
  return undefined;
}

/** Node's parser accepts HTTP/0.9 and HTTP/2.0 in a request line, too. */
export function isHttp1({ httpVersionMajor }: IncomingMessage): boolean {
  return httpVersionMajor === 1;
}

/**
 * @param coding the value of Transfer-Encoding. Other codings than `chunked` belong to the body,
 * and are lost where they are not undone.
 */
export function isChunkedAlone(coding: string | readonly string[]): boolean {
  return typeof coding === 'string' && coding.trim().toLowerCase() === 'chunked';
}
