import { createBulkhead } from '../common/bulkhead.ts';
import { RegistryError } from '../common/errors.ts';

/**
 * So many wait for their turn, or have it: while the database or the API server is slow, more would
 * pile up without end.
 */
const PLACES = 100;
/** So many of one service wait: the other places are for others. */
const WAITING_OF_SERVICE_MAX = 20;
/**
 * Who has waited longer may have given up, and would not expect any more that something is done.
 */
const WAIT_MAX_MS = 10_000;

/**
 * Keeps work that holds a database connection while it waits for something else from using all
 * connections.
 */
export interface ServiceLanes {
  /**
   * Does the work once no other of the service is under way in this process. Services take turns:
   * one with much work does not hold up the others.
   *
   * @throws RegistryError OVERLOADED, at once when too much waits, or when the turn has not come
   * within some seconds: the work is not begun.
   */
  run<T>(serviceName: string, work: () => Promise<T>): Promise<T>;
}

/**
 * @param count how much may be under way at a time, each of another service.
 * @param refusal what is said when too much waits.
 */
export function createServiceLanes(count: number, refusal: string): ServiceLanes {
  const places = createBulkhead(PLACES, refusal);
  const underWay = new Set<string>();
  /**
   * How to begin what waits, by service: the one that had its turn last comes last. None is empty.
   */
  const queues = new Map<string, Set<() => void>>();

  function beginNext(): void {
    for (const [serviceName, queue] of queues) {
      if (underWay.size >= count) return;
      const [begin] = queue;
      if (begin === undefined || underWay.has(serviceName)) continue;
      underWay.add(serviceName);
      leave(serviceName, begin);
      begin();
    }
  }

  function end(serviceName: string): void {
    underWay.delete(serviceName);
    const queue = queues.get(serviceName);
    queues.delete(serviceName);
    if (queue !== undefined) queues.set(serviceName, queue);
    beginNext();
  }

  function leave(serviceName: string, begin: () => void): void {
    const queue = queues.get(serviceName);
    queue?.delete(begin);
    if (queue?.size === 0) queues.delete(serviceName);
  }

  async function turn(serviceName: string): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    queues.set(serviceName, (queues.get(serviceName) ?? new Set()).add(resolve));
    const waiting = setTimeout(() => {
      leave(serviceName, resolve);
      reject(new RegistryError('OVERLOADED', 'Earlier calls are not finished in time: nothing was done; try again'));
    }, WAIT_MAX_MS);
    beginNext();
    return promise.finally(() => clearTimeout(waiting));
  }

  return {
    async run(serviceName, work) {
      const queue = queues.get(serviceName);
      if (queue !== undefined && queue.size >= WAITING_OF_SERVICE_MAX) throw new RegistryError('OVERLOADED', refusal);
      return places.run(async () => {
        await turn(serviceName);
        try {
          return await work();
        } finally {
          end(serviceName);
        }
      });
    },
  };
}
