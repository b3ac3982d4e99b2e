import { type ConcurrencyLimiter, createConcurrencyLimiter } from '@rollcall/platform/queues/concurrency-limiter.ts';
import { RegistryError } from './errors.ts';

/** While the database or the API server is slow, more would pile up without end. */
const CAPACITY = 100;
/** The rest is for other services. */
const WAITING_OF_SERVICE_MAX = 20;
const WAIT_MAX_MS = 10_000;
const LOOKUPS = 16;

/**
 * Keeps lookups of names that are not known here from using all connections.
 *
 * @returns a limiter whose refusals are RegistryError OVERLOADED.
 */
export function createLookupLimiter(most = LOOKUPS): ConcurrencyLimiter {
  return createConcurrencyLimiter({ most, capacity: most, refuse: tooManyLookups });
}

function tooManyLookups(): RegistryError {
  return new RegistryError('OVERLOADED', 'Too many lookups of unknown names');
}

/**
 * Keeps work that holds a database connection while it waits for something else from using all
 * connections: one of a service at a time, and the services alternate.
 *
 * @param most how much may be under way, each of another service.
 * @param refusal what is said when too much waits.
 * @returns a limiter whose refusals are RegistryError OVERLOADED.
 */
export function createServiceLimiter(most: number, refusal: string): ConcurrencyLimiter {
  return createConcurrencyLimiter({
    most,
    mostPerKey: 1,
    capacity: CAPACITY,
    waitingPerKey: WAITING_OF_SERVICE_MAX,
    maxWaitMs: WAIT_MAX_MS,
    refuse: (reason) => {
      const late = 'Earlier calls are not finished in time: nothing was done; try again';
      return new RegistryError('OVERLOADED', reason === 'late' ? late : refusal);
    },
  });
}
