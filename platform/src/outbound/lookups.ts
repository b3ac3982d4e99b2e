import { ADDRCONFIG, type LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import type { LookupFunction } from 'node:net';
import { createConcurrencyLimiter } from '../queues/concurrency-limiter.ts';

/**
 * Asks for all addresses of a host name, in the order in which they are worth trying; rejects where
 * there are none.
 */
export type Resolve = (hostname: string) => Promise<readonly LookupAddress[]>;

/** The lookups of host names, shared by all who need them. */
export interface Lookups {
  /**
   * Lasts two seconds at most; rejects with a {@link LookupError}, too. A name server that does not
   * answer is made up for by the answer of up to 30 seconds ago.
   */
  readonly resolve: Resolve;
  /** The same for connections. @param waitMs how long one may wait for it. */
  readonly within: (waitMs: number) => LookupFunction;
}

/** A lookup has not ended in time. It is a failed one for whoever connects. */
class LookupError extends Error {
  readonly code = 'EAI_AGAIN';
  readonly syscall = 'getaddrinfo';

  constructor(hostname: string) {
    super(`getaddrinfo EAI_AGAIN ${hostname}: the lookup takes too long`);
    this.name = 'LookupError';
  }
}

/**
 * Requests wait for a lookup, which a name server that does not answer would hold up for half a
 * minute.
 */
const LOOKUP_MAX_MS = 2000;
/**
 * New connections of so long use the same answer: one lookup for each would be hundreds in a
 * second.
 */
const KEPT_MS = 1000;
/**
 * Of the eight that libuv lets run (docs/decisions/0046): what else is looked up, the registry's
 * name for instance, finds a free one.
 */
const AT_ONCE = 6;
/** Of them, those of names that did not answer in time when they were last asked for. */
const MOST_IN_DOUBT = 3;
/** Of names in doubt that are remembered, and of last answers. */
const MOST_REMEMBERED = 1000;
/**
 * An answer serves so long after it came where no newer one can be had (RFC 8767): a name server
 * that is slow for a moment costs no request. That a name does not exist is an answer.
 */
const STALE_MS = 30_000;

/**
 * Shares lookups by name. Each needs one of the process' few threads until it ends, so there is one
 * for a name at a time, however many wait for it; and while one is overdue, later ones fail at
 * once. Others wait in line, and are not begun when nobody waits any more.
 */
export function createLookups(resolve: Resolve = resolveBySystem): Lookups {
  /** In line, under way, or answered a moment ago. */
  const asked = new Map<string, Promise<readonly LookupAddress[]>>();
  const slots = createConcurrencyLimiter({ most: AT_ONCE, maxWaitMs: LOOKUP_MAX_MS });
  /** Names that were too slow last time. */
  const inDoubt = new Set<string>();
  const last = createLastAnswers();

  function ask(hostname: string): Promise<readonly LookupAddress[]> {
    const lookup = Promise.withResolvers<readonly LookupAddress[]>();
    const answer = inTime(lookup.promise, LOOKUP_MAX_MS, hostname);
    asked.set(hostname, answer);
    const forget = () => void asked.delete(hostname);
    let hasBegun = false;
    let isOverdue = false;

    async function begin(): Promise<void> {
      hasBegun = true;
      try {
        const addresses = await resolve(hostname);
        last.remember(hostname, addresses);
        lookup.resolve(addresses);
        inDoubt.delete(hostname);
        // What came too late was not waited for, and the next one asks again.
        if (isOverdue) forget();
        else setTimeout(forget, KEPT_MS).unref();
      } catch (error) {
        if (!isTemporary(error)) last.forget(hostname);
        lookup.reject(error);
        if (!isOverdue) inDoubt.delete(hostname);
        forget();
      }
    }

    answer.catch((error: unknown) => {
      if (!(error instanceof LookupError)) return;
      if (!hasBegun) {
        forget();
        return;
      }
      isOverdue = true;
      // Forgetting costs each of them one more thread.
      if (inDoubt.size >= MOST_REMEMBERED) inDoubt.clear();
      inDoubt.add(hostname);
    });
    // Where its turn does not come in time, nobody waits for it any more.
    slots.run(hostname, begin).catch(() => undefined);
    return answer;
  }

  async function find(hostname: string): Promise<readonly LookupAddress[]> {
    const shared = asked.get(hostname);
    if (shared !== undefined) return shared;
    if (inDoubt.has(hostname)) {
      const held = [...inDoubt].filter((name) => asked.has(name)).length;
      if (held >= MOST_IN_DOUBT) throw new LookupError(hostname);
    }
    return ask(hostname);
  }

  return {
    resolve: (hostname) => last.insteadOf(find(hostname), hostname),
    within: (waitMs) => (hostname, options, callback) => {
      const answer = last.insteadOf(inTime(find(hostname), waitMs, hostname), hostname);
      void callBack(answer, (error, addresses) => {
        const [first] = addresses;
        if (options.all === true || first === undefined) callback(error, [...addresses]);
        else callback(error, first.address, first.family);
      });
    },
  };
}

interface LastAnswers {
  remember(hostname: string, addresses: readonly LookupAddress[]): void;
  /** The name has no address any more. */
  forget(hostname: string): void;
  /** @returns the last answer where this one is not to be had now, and that one is not too old. */
  insteadOf(answer: Promise<readonly LookupAddress[]>, hostname: string): Promise<readonly LookupAddress[]>;
}

function createLastAnswers(): LastAnswers {
  const answers = new Map<string, { readonly addresses: readonly LookupAddress[]; readonly atMs: number }>();
  return {
    remember(hostname, addresses) {
      answers.delete(hostname);
      answers.set(hostname, { addresses, atMs: performance.now() });
      const [oldest] = answers.keys();
      if (answers.size > MOST_REMEMBERED && oldest !== undefined) answers.delete(oldest);
    },
    forget: (hostname) => void answers.delete(hostname),
    async insteadOf(answer, hostname) {
      try {
        return await answer;
      } catch (error) {
        const last = answers.get(hostname);
        if (!isTemporary(error) || last === undefined || performance.now() - last.atMs > STALE_MS) throw error;
        return last.addresses;
      }
    },
  };
}

type LookupCallback = (error: Error | null, addresses: readonly LookupAddress[]) => void;

async function callBack(answer: Promise<readonly LookupAddress[]>, callback: LookupCallback): Promise<void> {
  let error: Error | null = null;
  const addresses = await answer.catch((reason: Error) => {
    error = reason;
    return [];
  });
  callback(error, addresses);
}

/** Pure. Whether an error says that a host name could not be looked up, or not in time. */
export function isOfLookup(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error && error.syscall === 'getaddrinfo';
}

/** Pure. Whether it says nothing of the name: the server did not answer, or not in time. */
export function isTemporary(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EAI_AGAIN';
}

/** As Node does for connections: families that this machine has no address of are left out. */
export function resolveBySystem(hostname: string): Promise<readonly LookupAddress[]> {
  return lookup(hostname, { all: true, hints: ADDRCONFIG });
}

async function inTime<T>(answer: Promise<T>, limitMs: number, hostname: string): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new LookupError(hostname)), limitMs);
  return Promise.race([answer, promise]).finally(() => clearTimeout(timer));
}
