import { createHash } from 'node:crypto';
import { createBulkhead } from '../domain/bulkhead.ts';
import { createKeyedMutex } from '../domain/keyed-mutex.ts';

/** So many wait for their turn, or have it: while the database or the API server is slow, more would pile up without end. */
const WAITING_MAX = 100;

/** Keeps work that holds a database connection while it waits for something else from taking all connections there are. */
export interface ServiceLanes {
  /**
   * Does the work once no other of the service is under way in this process.
   *
   * @throws RegistryError STORE_UNAVAILABLE at once when too much waits.
   */
  run<T>(serviceName: string, work: () => Promise<T>): Promise<T>;
}

/**
 * @param count how much may be under way at a time, each of another service.
 * @param refusal what is said when too much waits.
 */
export function createServiceLanes(count: number, refusal: string): ServiceLanes {
  const lanes = createKeyedMutex();
  const waiting = createBulkhead(WAITING_MAX, refusal);
  return { run: (serviceName, work) => waiting.run(() => lanes.run(laneOf(serviceName, count), work)) };
}

function laneOf(serviceName: string, count: number): string {
  return String(createHash('sha256').update(serviceName).digest().readUInt32BE(0) % count);
}
