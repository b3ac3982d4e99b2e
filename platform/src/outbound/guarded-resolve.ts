import { type AddressRule, allowedOf } from './address-rules.ts';
import type { Resolve } from './lookups.ts';

export interface GuardOptions {
  readonly mayConnect: AddressRule;
  /** Hosts that the rule is not asked about. */
  readonly except: ReadonlySet<string>;
}

/**
 * Leaves out the addresses that may not be connected to; rejects with AddressRefusedError where
 * none is left. It is asked right before each connection, so a name that leads elsewhere the second
 * time gains nothing.
 */
export function guardedResolve(resolve: Resolve, { mayConnect, except }: GuardOptions): Resolve {
  return async (hostname) => {
    const found = await resolve(hostname);
    return except.has(hostname) ? found : allowedOf(hostname, found, mayConnect);
  };
}
