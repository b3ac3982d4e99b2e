import type { ErrorCatalogue, ServiceError } from '../errors.ts';

/** What every server answers by itself, whatever its routes. */
export const serverErrors = {
  INVALID_PATH: {
    status: 400,
    error: 'Invalid request',
    message: 'The path has characters or percent-encodings that are not UTF-8',
  },
  PATH_NOT_FOUND: { status: 404, error: 'Not found', message: 'No route has this path' },
  METHOD_NOT_ALLOWED: {
    status: 405,
    error: 'Method not allowed',
    message: 'The path has no such method; Allow names its methods',
  },
  REQUEST_TIMEOUT: {
    status: 408,
    error: 'Invalid request',
    message: 'The request did not come in full within 30 s; at the gateway, its headers within 10 s',
  },
  TOO_LARGE: { status: 413, error: 'Request too large', message: 'The body has too many bytes' },
  UNSUPPORTED_TYPE: {
    status: 415,
    error: 'Invalid request',
    message:
      'The body is neither JSON nor, where tokens are issued, a form; or it is compressed, or in another charset than UTF-8',
  },
  EXPECTATION_FAILED: {
    status: 417,
    error: 'Expectation failed',
    message: 'The header Expect asks for something other than 100-continue',
  },
  HEADERS_TOO_LARGE: { status: 431, error: 'Invalid request', message: 'The header fields have too many bytes' },
  NOT_IMPLEMENTED: {
    status: 501,
    error: 'Not implemented',
    message: 'The request is CONNECT, or its Transfer-Encoding is another than chunked',
  },
  VERSION_NOT_SUPPORTED: {
    status: 505,
    error: 'HTTP version not supported',
    message: 'The request line names a version other than HTTP/1.1 and HTTP/1.0',
  },
  INTERNAL: { status: 500, error: 'Internal error', message: 'An internal error; the log has it under the request id' },
} as const satisfies ErrorCatalogue;

interface HttpErrorOptions {
  readonly message: string;
  readonly headers?: Record<string, string>;
  /** For {@link codedErrorBody}. */
  readonly code?: string | undefined;
  readonly details?: Readonly<Record<string, unknown>> | undefined;
}

/** An error that already knows its answer. */
export class HttpError extends Error {
  readonly statusCode: number;
  readonly error: string;
  readonly code: string;
  readonly details: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;

  constructor(statusCode: number, error: string, options: HttpErrorOptions) {
    super(options.message);
    this.name = 'HttpError';
    this.statusCode = statusCode;
    this.error = error;
    this.code = options.code ?? 'INVALID_REQUEST';
    this.details = options.details ?? {};
    this.headers = options.headers ?? {};
  }
}

/** An answer that every server gives in the same way. */
export function serverError(
  code: keyof typeof serverErrors,
  options: { readonly message: string; readonly headers?: Record<string, string> },
): HttpError {
  const { status, error } = serverErrors[code];
  return new HttpError(status, error, { ...options, code });
}

/**
 * The answer to an error of a catalogue: 401 has a challenge (RFC 9110, section 11.6.1), and what
 * passes the seconds to wait, unless the error has its own.
 */
export function answerOf({ code, kind, message, headers, details }: ServiceError): HttpError {
  const added: Record<string, string> = {};
  if (kind.status === 401) added['www-authenticate'] = 'Bearer';
  if (kind.passes ?? PASSING.has(kind.status)) added['retry-after'] = '1';
  return new HttpError(kind.status, kind.error ?? code, { code, message, details, headers: { ...added, ...headers } });
}

const PASSING = new Set([429, 503]);

/** How an application reports an error in the body of its answer. */
export type RenderError = (error: HttpError) => object;

/**
 * Of the registry API (contract 1, "Errors"): `error` is constant for a kind of error, `message`
 * says what is wrong with this request.
 */
export const plainErrorBody: RenderError = ({ error, message }) => ({ error, message });

/**
 * Of the gateway, federation, communication and payment (contracts 2 and 3, "Errors"): `code` is
 * constant for a kind of error.
 */
export const codedErrorBody: RenderError = ({ code, message, details }) => ({ error: { code, message, details } });
