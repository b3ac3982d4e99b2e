import { unauthenticated } from './bearer.ts';
import type { Authenticator, Caller, Holder } from './caller.ts';
import type { RouteLimits } from './limit-for.ts';
import type { Limits, Verdict } from './limits.ts';
import { requireScopes } from './scopes.ts';

export interface AdmissionDeps {
  readonly authenticator: Pick<Authenticator, 'authenticate'>;
  readonly limits: Pick<Limits, 'check'>;
}

/** A request of any protocol that has come, and nothing of it is believed yet. */
export interface Arrived {
  /** Of the connection; undefined once that is gone. */
  readonly remoteAddress: string | undefined;
  /** The header `X-Forwarded-For`. */
  readonly forwardedFor: string | readonly string[] | undefined;
  /** @returns the token that is shown, if any. @throws GatewayError where what is shown is none. */
  readonly token: () => string | undefined;
  /** Called once the request is counted, whatever becomes of it. */
  readonly onCounted: (counted: Counted) => void;
}

/** What is known of a request once it is counted. */
export interface Counted {
  /** Undefined: it counts for its address. */
  readonly caller: Caller | undefined;
  /** Of the limit, for the answer. */
  readonly headers: Verdict['headers'];
}

/** What is asked for, as far as it matters for who may. */
export interface Asked {
  /** Which a token must have. */
  readonly scopes: readonly string[];
  /** Where a route has its own. */
  readonly limits?: RouteLimits | undefined;
  /** Whether it may be asked for without a token, where it needs no scope. */
  readonly anonymous?: boolean | undefined;
}

interface Admitted<What> {
  /** Undefined: no token is shown, nor needed. */
  readonly holder: Holder | undefined;
  readonly asked: What;
}

/**
 * Who may: the one admission of all protocols. First comes who it is, then the limit, then the
 * scopes.
 *
 * A failed authentication counts against the limit of the address: guessing is no cheaper than
 * asking. What cannot be read counts for whoever sends it.
 *
 * @param read what is asked for; it throws what the request is to be refused with.
 * @throws GatewayError UNAUTHENTICATED, INVALID_TOKEN, IDENTITY_UNAVAILABLE, RATE_LIMITED,
 * INSUFFICIENT_SCOPE, and what `read` throws.
 */
export async function admit<What extends Asked>(
  { limits, authenticator }: AdmissionDeps,
  arrived: Arrived,
  read: () => What,
): Promise<Admitted<What>> {
  let asked: What | undefined;
  let holder: Holder | undefined;
  let fault: unknown;
  try {
    asked = read();
  } catch (error) {
    fault = error;
  }
  try {
    const token = arrived.token();
    if (token !== undefined) holder = { token, caller: await authenticator.authenticate(token) };
    else if (asked !== undefined && asked.anonymous !== true) throw unauthenticated();
  } catch (error) {
    asked = undefined;
    fault = error;
  }
  const caller = holder?.caller;
  const { remoteAddress, forwardedFor } = arrived;
  const { headers, refusal } = await limits.check({ caller, remoteAddress, forwardedFor, route: asked?.limits });
  arrived.onCounted({ caller, headers });
  if (refusal !== undefined) throw refusal;
  if (asked === undefined) throw fault;
  requireScopes(asked.scopes, caller);
  return { holder, asked };
}
