import { isUtf8 } from 'node:buffer';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { HttpError } from './errors.ts';

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
