import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Authenticator, Caller, Holder } from '../policy/caller.ts';
import type { RouteLimits } from '../policy/limits/limit-for.ts';
import type { Limits } from '../policy/limits/limits.ts';
import { bearerOf, unauthenticated } from './bearer.ts';

export interface AdmissionDeps {
  readonly authenticator: Authenticator;
  readonly limits: Limits;
}

interface Arrived {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/** What is asked for, as far as it matters for who may. */
interface Access {
  /** Where a route has its own. */
  readonly limits?: RouteLimits | undefined;
  /** Whether it may be asked for without a token. */
  readonly anonymous?: boolean | undefined;
}

/**
 * Who calls, counted against the limit. A failed authentication counts against the limit of the address: guessing is no cheaper
 * than asking.
 *
 * @returns undefined where no token is shown, and none is needed.
 * @throws GatewayError UNAUTHENTICATED, INVALID_TOKEN, RATE_LIMITED.
 */
export async function admit(
  { limits, authenticator }: AdmissionDeps,
  { request, reply }: Arrived,
  access: Access = {},
): Promise<Holder | undefined> {
  let holder: Holder | undefined;
  let failure: unknown;
  try {
    const token = bearerOf(request);
    if (token !== undefined) holder = { token, caller: await authenticator.authenticate(token) };
    else if (access.anonymous !== true) throw unauthenticated();
  } catch (err) {
    failure = err;
  }
  const verdict = await limits.check({
    caller: holder?.caller,
    remoteAddress: request.socket.remoteAddress,
    forwardedFor: request.headers['x-forwarded-for'],
    route: failure === undefined ? access.limits : undefined,
  });
  if (verdict.refusal !== undefined) throw verdict.refusal;
  if (failure !== undefined) throw failure;
  reply.headers(verdict.headers);
  return holder;
}

/** As {@link admit}, where nobody is admitted without a token. For the access log, the request learns whose it is. */
export async function admitCaller(deps: AdmissionDeps, arrived: Arrived): Promise<Caller> {
  const holder = await admit(deps, arrived);
  if (holder === undefined) throw unauthenticated();
  const { told } = arrived.request;
  if (told !== undefined) told.subject = holder.caller.subject;
  return holder.caller;
}
