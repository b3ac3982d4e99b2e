import { CodedError } from '@rollcall/platform/errors.ts';
import { HttpError } from '@rollcall/platform/http/errors.ts';

/**
 * Everything that the gateway refuses or cannot do: its answer, and the sentence for when nothing
 * more precise is known.
 */
export const errorCatalogue = {
  INVALID_REQUEST: { status: 400, message: 'The request is not valid' },
  INVALID_PATH: {
    status: 400,
    message: 'The path is not in its plain form; send it without dot segments, empty segments and encoded slashes',
  },
  UNAUTHENTICATED: { status: 401, message: 'A bearer token is required; POST /api/v1/auth/token issues one' },
  INVALID_TOKEN: { status: 401, message: 'The bearer token is not valid' },
  INSUFFICIENT_SCOPE: { status: 403, message: 'The token lacks a scope that the route requires' },
  ROUTE_NOT_FOUND: { status: 404, message: 'No route has this path' },
  SERVICE_NOT_FOUND: { status: 404, message: 'No service of that name is registered' },
  BODY_TOO_LARGE: { status: 413, message: 'The body has too many bytes' },
  UPGRADE_REQUIRED: { status: 426, message: 'This path is for WebSockets; send an upgrade request' },
  RATE_LIMITED: { status: 429, message: 'The rate limit is used up; try again after the time in Retry-After' },
  UPSTREAM_UNREACHABLE: { status: 502, message: 'The service could not be reached' },
  UPSTREAM_INVALID: { status: 502, message: 'The service answered with something that is not HTTP' },
  ADDRESS_REFUSED: {
    status: 502,
    message: 'The service is registered at an address that may not be called; see serviceAddresses of the chart',
  },
  UPSTREAM_UNAVAILABLE: { status: 503, message: 'The service has failed too often and is paused; try again' },
  IDENTITY_UNAVAILABLE: { status: 503, message: "The keys of the token's issuer cannot be fetched; try again" },
  DISCOVERY_UNAVAILABLE: { status: 503, message: 'The registrations are not known yet; try again' },
  TOO_MANY_CONNECTIONS: { status: 503, message: 'This replica serves no more connections; try again' },
  UPSTREAM_TIMEOUT: { status: 504, message: 'The service did not answer in time' },
} as const satisfies Record<string, { status: number; message: string }>;

export type ErrorCode = keyof typeof errorCatalogue;

interface GatewayErrorOptions extends ErrorOptions {
  readonly message?: string;
  readonly headers?: Record<string, string>;
  readonly details?: Readonly<Record<string, unknown>>;
}

/**
 * An error of the gateway. The message is for its client: it must hold neither secrets nor
 * addresses of backends.
 */
export class GatewayError extends CodedError<ErrorCode> {
  readonly headers: Record<string, string>;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, options: GatewayErrorOptions = {}) {
    super(code, options.message ?? errorCatalogue[code].message, options);
    this.name = 'GatewayError';
    this.headers = options.headers ?? {};
    this.details = options.details ?? {};
  }
}

/** The HTTP answer to an error of the gateway; undefined for anything else. */
export function mapError(error: unknown): HttpError | undefined {
  if (!(error instanceof GatewayError)) return undefined;
  const { code, message, details } = error;
  return new HttpError(errorCatalogue[code].status, code, { code, message, details, headers: error.headers });
}

/** The HTTP answer to any error, where no server gives it. What nobody foresaw is INTERNAL. */
export function answerTo(error: unknown): HttpError {
  if (error instanceof HttpError) return error;
  const message = 'The request failed for a reason of ours';
  return mapError(error) ?? new HttpError(500, 'INTERNAL', { code: 'INTERNAL', message });
}
