import type { FastifyRequest } from 'fastify';
import { type ErrorCode, RegistryError } from '../../common/errors.ts';
import type { WebhookCall } from '../domain/call-admission.ts';

/** What a call is refused with whose proof is missing, wrong or cannot be checked. */
export const PROOF_REFUSALS = [
  'SIGNATURE_REQUIRED',
  'INVALID_SIGNATURE',
  'SECRET_MISSING',
  'DATABASE_UNAVAILABLE',
] as const satisfies readonly ErrorCode[];

interface ProvingBody {
  readonly webhook_secret?: string;
  readonly secret?: string;
}

/** As much of a request as proves that it may be made. */
type ProvingRequest = Pick<FastifyRequest, 'headers' | 'params' | 'rawBody' | 'routeOptions' | 'subject'>;

/**
 * What a request brings to show that it may be made.
 *
 * @returns one whose body says what it is for, as those do that have to name the service and what
 * is to be done with it.
 */
export function proofOf(request: ProvingRequest, body: ProvingBody | null): WebhookCall {
  const header = (name: string) => {
    const value = request.headers[name];
    return typeof value === 'string' ? value : undefined;
  };
  return {
    path: canonicalPath(request.routeOptions.url ?? '', request.params),
    subject: request.subject,
    isHarmless: false,
    body: request.rawBody,
    isBound: true,
    signature: header('x-webhook-signature'),
    timestamp: header('x-webhook-timestamp'),
    standard: {
      id: header('webhook-id'),
      timestamp: header('webhook-timestamp'),
      signature: header('webhook-signature'),
    },
    secrets: [body?.webhook_secret, body?.secret],
  };
}

/** A body that may name what the path does, too, and the action. */
type BindingBody<Name extends string> = (ProvingBody & { readonly [Key in Name | 'action']?: string }) | null;

/**
 * The proof of a call whose path says what it is for. A signature of the plain kind covers the body
 * alone, which so has to name both.
 *
 * @param name of the member that is to be as in the path.
 * @throws RegistryError INVALID_REQUEST where it is not.
 */
export function boundProofOf<Name extends string>(
  request: ProvingRequest & { readonly body: BindingBody<Name> },
  name: Name,
  id: string,
): WebhookCall {
  const { [name]: named, action } = request.body ?? {};
  if ((named ?? id) !== id) throw new RegistryError('INVALID_REQUEST', `${name} of the body is not that of the path`);
  return { ...proofOf(request, request.body), isBound: named !== undefined && action !== undefined };
}

/**
 * The path that a signature covers: that of the operation at the registry itself, whatever the
 * gateway has it under, without a query, each parameter percent-encoded as encodeURIComponent does.
 * Proxies may encode the path in another way on its way here.
 *
 * @param route such as `/api/v1/jobs/:job_id/promote`.
 */
export function canonicalPath(route: string, params: unknown): string {
  return route.replace(/:(\w+)/g, (_parameter, name: string) => {
    const value: unknown = typeof params === 'object' && params !== null ? Reflect.get(params, name) : undefined;
    return encodeURIComponent(String(value));
  });
}
