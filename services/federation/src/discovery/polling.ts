import { createDueWork, type DueWork, takeDueRows } from '@rollcall/platform/postgres/due-work.ts';
import type { Pool } from '@rollcall/platform/postgres/pool.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import type { Changes } from '../domain/changes.ts';
import type { ReadSchema } from '../domain/ports.ts';
import type { LookTimes } from '../domain/subgraphs.ts';

export interface PollingDeps {
  readonly pool: () => Pool;
  readonly readSchema: ReadSchema;
  readonly changes: Changes;
  readonly times: LookTimes;
  readonly log: Logger;
}

interface DueSubgraph {
  readonly service: string;
  readonly candidates: readonly string[];
  readonly url: string;
  readonly gone_at: Date | null;
}

const CONCURRENCY = 8;
const LOOK_MS = 250;
/** After a service that did not answer, however long the poll is. */
const RETRY_MS = 5000;

/** Reads schemas that are due, in whichever replica takes them, and lets go of services that stay away. */
export function createPolling({ pool, readSchema, changes, times, log }: PollingDeps): DueWork {
  return createDueWork<DueSubgraph>({
    name: 'schemas',
    take: (limit) => takeDue(pool(), limit, times.pollMs),
    async work({ service, candidates, url, gone_at }, signal) {
      if (gone_at !== null) {
        await changes.make([{ kind: 'lapsed', service }]);
        return;
      }
      const read = await readSchema([url, ...candidates.filter((each) => each !== url)], signal);
      if (read.failure === undefined) {
        await changes.make([{ kind: 'read', service, url: read.url, sdl: read.sdl }]);
        return;
      }
      await changes.make([{ kind: 'unread', service, failure: read.failure }]);
      await lookSoon(pool(), service);
    },
    concurrency: CONCURRENCY,
    pollMs: LOOK_MS,
    log,
  });
}

/** Half of the poll is jitter: services that came together are not asked together for ever. */
function takeDue(pool: Pool, limit: number, pollMs: number): Promise<readonly DueSubgraph[]> {
  return takeDueRows<DueSubgraph>({
    pool,
    table: 'subgraphs',
    columns: 'service, candidates, url, gone_at',
    where: 'NOT is_left_out',
    leaseSeconds: (pollMs / 1000) * (0.75 + Math.random() / 2),
    limit,
  });
}

async function lookSoon(pool: Pool, service: string): Promise<void> {
  await pool.query(
    'UPDATE subgraphs SET due_at = least(due_at, now() + make_interval(secs => $2)) WHERE service = $1',
    [service, RETRY_MS / 1000],
  );
}
