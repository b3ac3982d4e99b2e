import type { Asked } from '../../admission/admission.ts';
import { GatewayError } from '../../errors.ts';
import { faultOfRequest } from './answer.ts';
import type { CallHead } from './headers.ts';
import { type GrpcMethod, parseMethodPath, scopesOfCall } from './routing.ts';
import { parseTimeout } from './timeout.ts';

/** What a call asks for. */
interface AskedCall extends Asked {
  readonly method: GrpcMethod;
  /** The registration that the caller names, whatever the path says. */
  readonly override: string | undefined;
  readonly timeoutMs: number | undefined;
}

/** @throws GatewayError; HttpError for what is HTTP and no gRPC. */
export function readCall(head: CallHead): AskedCall {
  const fault = faultOfRequest(head);
  if (fault !== undefined) throw fault;
  const method = parseMethodPath(head.path);
  if (method === undefined) throw new GatewayError('ROUTE_NOT_FOUND', { message: 'The path names no gRPC method' });
  if (head.repeated !== undefined) throw invalid(`The metadata has ${head.repeated} more than once`);
  const override = overrideOf(head);
  return { method, override, timeoutMs: timeoutOf(head), scopes: scopesOfCall(method, override) };
}

/** Names beyond ASCII come percent-encoded, like those in the paths of REST. */
function overrideOf({ override }: CallHead): string | undefined {
  if (override === undefined) return undefined;
  try {
    if (/^[!-~]+$/.test(override)) return decodeURIComponent(override);
  } catch {
    // As below.
  }
  throw invalid('The metadata rollcall-service must be the name of a service, percent-encoded');
}

function timeoutOf({ timeout }: CallHead): number | undefined {
  if (timeout === undefined) return undefined;
  const ms = parseTimeout(timeout);
  if (ms === undefined) throw invalid('grpc-timeout is no timeout');
  return ms;
}

function invalid(message: string): GatewayError {
  return new GatewayError('INVALID_REQUEST', { message });
}
