import { type ErrorCatalogue, ServiceError } from '@rollcall/platform/errors.ts';
import { answerOf, HttpError } from '@rollcall/platform/http/errors.ts';

/** Everything that the gateway refuses or cannot do. In gRPC a service without a target has no methods. */
export const errorCatalogue = {
  INVALID_REQUEST: { status: 400, message: 'The request is not valid; the OpenAPI document describes valid ones' },
  INVALID_PATH: {
    status: 400,
    message: 'The path is not in its plain form; send it without dot segments, empty segments and encoded slashes',
  },
  UNAUTHENTICATED: { status: 401, message: 'A bearer token is required; POST /api/v1/auth/token issues one' },
  INVALID_TOKEN: { status: 401, message: 'The bearer token is not valid; get a new one' },
  INSUFFICIENT_SCOPE: { status: 403, message: 'The token lacks a scope that the route requires; get one with it' },
  ROUTE_NOT_FOUND: {
    status: 404,
    message: 'No route has this path; services are below /api/v1/<name>/',
    grpc: 'UNIMPLEMENTED',
  },
  SERVICE_NOT_FOUND: {
    status: 404,
    message: 'No service of that name is registered; GET /api/v1/registry/services lists them',
    grpc: 'UNIMPLEMENTED',
  },
  BODY_TOO_LARGE: { status: 413, message: 'The body has too many bytes; send a smaller one' },
  UPGRADE_REQUIRED: { status: 426, message: 'This path is for WebSockets; send an upgrade request' },
  RATE_LIMITED: { status: 429, message: 'The rate limit is used up; try again after the time in Retry-After' },
  UPSTREAM_UNREACHABLE: { status: 502, message: 'The service could not be reached; try again later' },
  UPSTREAM_INVALID: {
    status: 502,
    message: 'The service answered with something that is not valid HTTP; its URL may be wrong',
  },
  ADDRESS_REFUSED: {
    status: 502,
    message: 'The service is registered at an address that may not be called; see serviceAddresses of the chart',
    // To try it again is of no use before it is registered anew.
    grpc: 'FAILED_PRECONDITION',
  },
  UPSTREAM_UNAVAILABLE: { status: 503, message: 'The service has failed too often and is paused; try again' },
  IDENTITY_UNAVAILABLE: { status: 503, message: "The keys of the token's issuer cannot be fetched; try again" },
  DISCOVERY_UNAVAILABLE: { status: 503, message: 'The registrations are not known yet; try again' },
  TOO_MANY_CONNECTIONS: { status: 503, message: 'This replica serves no more connections; try again' },
  UPSTREAM_TIMEOUT: {
    status: 504,
    message: 'The service did not answer in time; try again, or allow its route more time',
  },
} as const satisfies ErrorCatalogue;

export type ErrorCode = keyof typeof errorCatalogue;

/** An error of the gateway. */
export class GatewayError extends ServiceError<ErrorCode> {
  constructor(code: ErrorCode, options: ConstructorParameters<typeof ServiceError>[2] = {}) {
    super(code, errorCatalogue[code], options);
    this.name = 'GatewayError';
  }
}

/** The HTTP answer to an error of the gateway; undefined for anything else. */
export function mapError(error: unknown): HttpError | undefined {
  return error instanceof GatewayError ? answerOf(error) : undefined;
}

/** The HTTP answer to any error, where no server gives it. What nobody foresaw is INTERNAL. */
export function answerTo(error: unknown): HttpError {
  if (error instanceof HttpError) return error;
  const message = 'The request failed for a reason of ours';
  return mapError(error) ?? new HttpError(500, 'INTERNAL', { code: 'INTERNAL', message });
}
