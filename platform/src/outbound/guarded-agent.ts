import { lookup as lookupName } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { Agent, buildConnector } from 'undici';
import { passOverUnexpectedContinue } from '../node-internals/unexpected-continue.ts';
import { AddressRefusedError, type AddressRule, allowedOf } from './address-rules.ts';

/** Closed or destroyed after use. */
export type GuardedAgent = Agent;

export interface GuardedAgentOptions {
  readonly mayConnect: AddressRule;
  readonly connectTimeoutMs: number;
  /** Whether connections are used again. */
  readonly keepAlive: boolean;
}

/**
 * An HTTP client that connects only where the rule allows, for URLs that come from outside. The
 * rule is asked about the very address that is connected to, so a name that resolves to something
 * else the second time gains nothing. Redirects are not followed, proxies of the environment not
 * used: what is behind a proxy could not be checked.
 *
 * Requests are rejected with AddressRefusedError.
 */
export function createGuardedAgent({ mayConnect, connectTimeoutMs, keepAlive }: GuardedAgentOptions): GuardedAgent {
  passOverUnexpectedContinue();
  const connect = buildConnector({
    timeout: connectTimeoutMs,
    allowH2: false,
    lookup: guardedLookup(mayConnect),
  });
  return new Agent({
    allowH2: false,
    pipelining: keepAlive ? 1 : 0,
    connect(options, callback) {
      const { hostname } = options;
      // Nothing is looked up for an address. Odd spellings of one are gone: the URL parser has made
      // them canonical.
      if (isIP(hostname) === 0 || mayConnect(hostname)) connect(options, callback);
      else queueMicrotask(() => callback(new AddressRefusedError(hostname, [hostname]), null));
    },
  });
}

/**
 * A `lookup` for sockets that leaves out the addresses that may not be connected to, and fails with
 * AddressRefusedError where none is left.
 *
 * @param resolve what asks the system; a test passes its own.
 */
export function guardedLookup(mayConnect: AddressRule, resolve: typeof lookupName = lookupName): LookupFunction {
  return (hostname, options, callback) => {
    resolve(hostname, { ...options, all: true }, (error, found) => {
      if (error !== null) {
        callback(error, []);
        return;
      }
      try {
        const allowed = allowedOf(hostname, found, mayConnect);
        const [first] = allowed;
        if (options.all === true || first === undefined) callback(null, allowed);
        else callback(null, first.address, first.family);
      } catch (refused) {
        callback(refused instanceof Error ? refused : new Error(String(refused)), []);
      }
    });
  };
}
