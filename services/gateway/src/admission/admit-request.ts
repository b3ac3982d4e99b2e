import type { FastifyReply, FastifyRequest } from 'fastify';
import { type AdmissionDeps, admit } from './admission.ts';
import { bearerOf, unauthenticated } from './bearer.ts';
import type { Caller, Holder } from './caller.ts';
import type { RouteLimits } from './limit-for.ts';

interface Arrived {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/** What a route says of who may ask for it. */
interface Access {
  readonly limits?: RouteLimits | undefined;
  /** Whether it may be asked for without a token. */
  readonly anonymous?: boolean | undefined;
}

/**
 * As {@link admit}; the answer gets the headers of the limit.
 *
 * @returns undefined where no token is shown, and none is needed.
 */
export async function admitRequest(
  deps: AdmissionDeps,
  { request, reply }: Arrived,
  access: Access = {},
): Promise<Holder | undefined> {
  const token = (): string | undefined => {
    const shown = bearerOf(request.raw);
    if (shown === undefined && access.anonymous !== true) throw unauthenticated();
    return shown;
  };
  const { holder, headers } = await admit(deps, request.raw, { token, limits: access.limits });
  reply.headers(headers);
  return holder;
}

/**
 * As {@link admitRequest}, where nobody is admitted without a token. For the access log, the
 * request learns whose it is.
 */
export async function admitCaller(deps: AdmissionDeps, arrived: Arrived): Promise<Caller> {
  const holder = await admitRequest(deps, arrived);
  if (holder === undefined) throw unauthenticated();
  const { told } = arrived.request;
  if (told !== undefined) told.subject = holder.caller.subject;
  return holder.caller;
}
