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
 * no text is refused: to replace what cannot be decoded would make one name of two. So is a member
 * that is there twice: of two programs one may read the first, and the other the last. A byte order
 * mark of UTF-8 is passed over.
 */
export function jsonParser(app: Pick<FastifyInstance, 'getDefaultJsonParser'>): ParseJson {
  const parse = app.getDefaultJsonParser('error', 'error');
  return (request, body, parsed) => {
    const text = utf8Text(body);
    return void parse(request, text, (error, value) => {
      if (error !== null) parsed(text === '' ? error : notText(NO_JSON));
      else if (namesIn(text) !== membersOf(value)) parsed(notText('must not name a member of an object twice'));
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

/** How many members have a name in JSON: after each, and after nothing else, a string is followed by a colon. */
function namesIn(json: string): number {
  let names = 0;
  for (let from = json.indexOf('"'); from !== -1; from = json.indexOf('"', from)) {
    let end = json.indexOf('"', from + 1);
    while (isEscaped(json, end)) end = json.indexOf('"', end + 1);
    from = end + 1;
    while (isBlank(json.charCodeAt(from))) from += 1;
    if (json[from] === ':') names += 1;
  }
  return names;
}

/** Whether an odd number of backslashes is before it. */
function isEscaped(json: string, at: number): boolean {
  let from = at;
  while (json[from - 1] === '\\') from -= 1;
  return (at - from) % 2 === 1;
}

/** White space of RFC 8259, section 2. */
function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

/** How many members the objects of a value have that was JSON. Of any depth. */
function membersOf(value: unknown): number {
  let members = 0;
  const waiting: unknown[] = [value];
  while (waiting.length > 0) {
    const next = waiting.pop();
    if (typeof next !== 'object' || next === null) continue;
    const below: readonly unknown[] = Object.values(next);
    if (!Array.isArray(next)) members += below.length;
    for (const each of below) if (typeof each === 'object') waiting.push(each);
  }
  return members;
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
