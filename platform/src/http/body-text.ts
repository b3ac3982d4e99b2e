import { isUtf8 } from 'node:buffer';
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { HttpError, serverError } from './errors.ts';

/** The library says the same of such members, by which who copies them may change every object. */
const NO_JSON = 'must be JSON, and have no member __proto__, nor one constructor with a member prototype';

type Parsed = (error: Error | null, body?: unknown) => void;
type ParseJson = (request: FastifyRequest, body: Buffer, parsed: Parsed) => void;

/** An escape of half a pair of UTF-16. */
const SURROGATE_ESCAPE = /\\u[dD][89A-Fa-f]/;

/**
 * A parser of JSON bodies (RFC 8259) for `addContentTypeParser` with `parseAs: 'buffer'`. What is
 * no text is refused: to replace what cannot be decoded would make one name of two. A byte order
 * mark of UTF-8 is passed over.
 */
export function jsonParser(app: Pick<FastifyInstance, 'getDefaultJsonParser'>): ParseJson {
  const parse = app.getDefaultJsonParser('error', 'error');
  return (request, body, parsed) => {
    const text = utf8Text(body);
    return void parse(request, text, (error, value) => {
      if (error !== null) parsed(text === '' ? error : notText(NO_JSON));
      else if (SURROGATE_ESCAPE.test(text) && !isWellFormed(value))
        parsed(notText('must not have escapes of unpaired surrogates'));
      else parsed(error, value);
    });
  };
}

/**
 * What is wrong with how a body is encoded, by its header fields (RFC 9110, sections 8.3.2, 8.4 and
 * 15.5.16): no coding is undone here, and text is UTF-8.
 */
export function bodyFault({
  'content-encoding': codings = '',
  'content-type': type = '',
}: IncomingHttpHeaders): HttpError | undefined {
  if (codings.split(',').some((coding) => !/^(?:identity)?$/i.test(coding.trim()))) {
    const message = 'The body has a Content-Encoding; send it without one';
    return serverError('UNSUPPORTED_TYPE', { message, headers: { 'accept-encoding': 'identity' } });
  }
  const charset = CHARSET.exec(type)?.[1];
  if (charset === undefined || /^(?:utf-?8|us-ascii)$/i.test(charset)) return undefined;
  return serverError('UNSUPPORTED_TYPE', { message: 'The body has another charset than UTF-8; send it in UTF-8' });
}

const CHARSET = /;\s*charset\s*=\s*"?([^";\s]*)/i;

/** @throws HttpError 400 where the bytes are no UTF-8. */
export function utf8Text(body: Buffer): string {
  if (!isUtf8(body)) throw notText('must be in UTF-8');
  return body.toString('utf8');
}

function notText(rule: string): HttpError {
  return new HttpError(400, 'Invalid request', { message: `The body ${rule}` });
}

/**
 * Whether every string of a value that was JSON, names of members included, can be written in
 * UTF-8. Of any depth.
 */
function isWellFormed(value: unknown): boolean {
  const waiting: unknown[] = [value];
  while (waiting.length > 0) {
    const next = waiting.pop();
    if (typeof next === 'string') {
      if (!next.isWellFormed()) return false;
    } else if (typeof next === 'object' && next !== null) {
      for (const [name, member] of Object.entries(next)) waiting.push(name, member);
    }
  }
  return true;
}
