import { hash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';

/** An answer that is made once and sent many times. */
export interface Rendered {
  /**
   * Bytes when it is large; a string goes to the socket in one write with the headers, bytes after
   * them.
   */
  readonly body: string | Buffer;
  /**
   * Weak validator (RFC 9110, section 8.8.1): a hash of what the answer says, so that replicas
   * agree.
   */
  readonly etag: string;
}

/** @param said what it says, where some of the body does not make it another answer. */
export function rendered(body: string | Buffer, said = body): Rendered {
  return { body, etag: `W/"${hash('md5', said, 'base64url')}"` };
}

/** Answers with the body, or with 304 when the caller has it already. */
export function sendRendered(request: FastifyRequest, reply: FastifyReply, { body, etag }: Rendered): void {
  void reply.header('etag', etag).header('cache-control', 'no-cache');
  if (matches(request.headers['if-none-match'], etag)) void reply.status(304).send();
  else void reply.header('content-type', 'application/json; charset=utf-8').send(body);
}

/** If-None-Match compares weakly (RFC 9110, section 13.1.2). */
function matches(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  if (header === etag || header === '*') return true;
  const opaque = etag.replace(/^W\//, '');
  return header.split(',').some((candidate) => candidate.trim().replace(/^W\//, '') === opaque);
}
