import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../errors.ts';
import type { Authenticator, Holder } from './caller.ts';
import type { RouteLimits } from './limit-for.ts';
import type { Limits, Verdict } from './limits.ts';

export interface AdmissionDeps {
  readonly authenticator: Pick<Authenticator, 'authenticate'>;
  readonly limits: Pick<Limits, 'check'>;
}

/** What is asked for, as far as it matters for who may. */
export interface Asking {
  /**
   * @returns the token that is shown; undefined: none is, nor needed.
   * @throws GatewayError where what is shown is none.
   */
  readonly token: () => string | undefined;
  /** Where a route has its own. */
  readonly limits?: RouteLimits | undefined;
}

interface Admission {
  readonly holder: Holder | undefined;
  /** Of the limit, for the answer. */
  readonly headers: Verdict['headers'];
}

/**
 * Who makes a request, counted against the limit. A failed authentication counts against the limit
 * of the address: guessing is no cheaper than asking.
 *
 * @throws GatewayError UNAUTHENTICATED, INVALID_TOKEN, RATE_LIMITED, and what the token cannot be
 * read for.
 */
export async function admit(
  { limits, authenticator }: AdmissionDeps,
  { headers, socket }: Pick<IncomingMessage, 'headers' | 'socket'>,
  asking: Asking,
): Promise<Admission> {
  let holder: Holder | undefined;
  let failure: unknown;
  try {
    const token = asking.token();
    if (token !== undefined) holder = { token, caller: await authenticator.authenticate(token) };
  } catch (err) {
    failure = err;
  }
  const verdict = await limits.check({
    caller: holder?.caller,
    remoteAddress: socket.remoteAddress,
    forwardedFor: headers['x-forwarded-for'],
    route: failure === undefined ? asking.limits : undefined,
  });
  if (verdict.refusal !== undefined) throw verdict.refusal;
  if (failure instanceof GatewayError) Object.assign(failure.headers, verdict.headers);
  if (failure !== undefined) throw failure;
  return { holder, headers: verdict.headers };
}
