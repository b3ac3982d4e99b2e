import { createDueWork, type DueWork, takeDueRows } from '@rollcall/platform/postgres/due-work.ts';
import type { Pool } from '@rollcall/platform/postgres/pool.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import type { Refunding } from '../domain/refunding.ts';

/** Longer than a refund at PayFast takes, which asks three times. */
const LEASE_SECONDS = 60;
const AT_ONCE = 5;

export interface RefundWorkDeps {
  readonly pool: () => Pool;
  readonly refunding: Refunding;
  readonly log: Logger;
}

/** Makes refunds that could not be made at once, and finds out what became of others. */
export function createRefundWork({ pool, refunding, log }: RefundWorkDeps): DueWork {
  return createDueWork<{ readonly id: string }>({
    name: 'refunds',
    take: (limit) => takeDueRows({ pool: pool(), table: 'refunds', columns: 'id', leaseSeconds: LEASE_SECONDS, limit }),
    work: ({ id }) => refunding.work(id),
    concurrency: AT_ONCE,
    log,
  });
}
