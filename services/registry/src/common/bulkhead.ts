import { RegistryError } from './errors.ts';

/** Keeps one kind of work from using all connections. */
export interface Bulkhead {
  /** @throws RegistryError OVERLOADED at once when too much of it is under way. */
  run<T>(work: () => Promise<T>): Promise<T>;
  /** How often work was done or refused. */
  readonly runs: number;
}

/**
 * @param limit how much may be under way at a time.
 * @param refusal what is said to what is over it.
 */
export function createBulkhead(limit: number, refusal = 'Too many lookups of unknown names'): Bulkhead {
  let underWay = 0;
  let runs = 0;
  return {
    async run(work) {
      runs += 1;
      if (underWay >= limit) throw new RegistryError('OVERLOADED', refusal);
      underWay += 1;
      try {
        return await work();
      } finally {
        underWay -= 1;
      }
    },
    get runs() {
      return runs;
    },
  };
}
