import { ADDRCONFIG, type LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import type { LookupFunction } from 'node:net';

/**
 * Asks for all addresses of a host name, in the order in which they are worth trying; rejects where
 * there are none.
 */
export type Resolve = (hostname: string) => Promise<readonly LookupAddress[]>;

/** The lookups of host names, shared by all who need them. */
export interface Lookups {
  /** Lasts two seconds at most; rejects with a {@link LookupError}, too. */
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
/** Of names in doubt that are remembered. */
const MOST_REMEMBERED = 1000;

/**
 * Shares lookups by name. Each needs one of the process' few threads until it ends, so there is one
 * for a name at a time, however many wait for it; and while one is overdue, later ones fail at
 * once. Others wait in line, and are not begun when nobody waits any more.
 */
export function createLookups(resolve: Resolve = resolveBySystem): Lookups {
  /** In line, under way, or answered a moment ago. */
  const asked = new Map<string, Promise<readonly LookupAddress[]>>();
  const inLine = new Set<() => Promise<void>>();
  /** Names that were too slow last time. */
  const inDoubt = new Set<string>();
  let underWay = 0;

  function ask(hostname: string): Promise<readonly LookupAddress[]> {
    const lookup = Promise.withResolvers<readonly LookupAddress[]>();
    const answer = inTime(lookup.promise, LOOKUP_MAX_MS, hostname);
    asked.set(hostname, answer);
    const forget = () => void asked.delete(hostname);
    let isOverdue = false;

    async function begin(): Promise<void> {
      inLine.delete(begin);
      underWay += 1;
      try {
        lookup.resolve(await resolve(hostname));
        inDoubt.delete(hostname);
        // What came too late was not waited for, and the next one asks again.
        if (isOverdue) forget();
        else setTimeout(forget, KEPT_MS).unref();
      } catch (error) {
        lookup.reject(error);
        if (!isOverdue) inDoubt.delete(hostname);
        forget();
      }
      underWay -= 1;
      const [next] = inLine;
      if (next !== undefined) void next();
    }

    answer.catch((error: unknown) => {
      if (!(error instanceof LookupError)) return;
      if (inLine.delete(begin)) {
        forget();
        return;
      }
      isOverdue = true;
      // Forgetting costs each of them one more thread.
      if (inDoubt.size >= MOST_REMEMBERED) inDoubt.clear();
      inDoubt.add(hostname);
    });
    if (underWay < AT_ONCE) void begin();
    else inLine.add(begin);
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
    resolve: find,
    within: (waitMs) => (hostname, options, callback) => {
      const answer = inTime(find(hostname), waitMs, hostname);
      void tell(answer, (error, addresses) => {
        const [first] = addresses;
        if (options.all === true || first === undefined) callback(error, [...addresses]);
        else callback(error, first.address, first.family);
      });
    },
  };
}

type Tell = (error: Error | null, addresses: readonly LookupAddress[]) => void;

async function tell(answer: Promise<readonly LookupAddress[]>, callback: Tell): Promise<void> {
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

/** As Node does for connections: families that this machine has no address of are left out. */
export function resolveBySystem(hostname: string): Promise<readonly LookupAddress[]> {
  return lookup(hostname, { all: true, hints: ADDRCONFIG });
}

async function inTime<T>(answer: Promise<T>, limitMs: number, hostname: string): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new LookupError(hostname)), limitMs);
  return Promise.race([answer, promise]).finally(() => clearTimeout(timer));
}
