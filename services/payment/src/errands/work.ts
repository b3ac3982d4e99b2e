import type { Clock } from '@rollcall/platform/clock.ts';
import { createDueWork, type DueWork, takeDueRows } from '@rollcall/platform/postgres/due-work.ts';
import type { Pool } from '@rollcall/platform/postgres/pool.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { backoffMs } from '@rollcall/platform/retry.ts';
import type { Vault } from '@rollcall/platform/vault.ts';
import type { Outcome, PaymentProvider, ProviderName } from '../domain/ports.ts';
import { type Errand, errandContext } from './queue.ts';

const AT_ONCE = 3;
/** Longer than a call takes. */
const LEASE_SECONDS = 60;
const BACKOFF = { baseMs: 10_000, maxMs: 6 * 3_600_000 };
/** Then a person has to see to it: it is due no more, and in the list of those. */
const GIVE_UP_AFTER_MS = 14 * 86_400_000;

interface ErrandRow {
  readonly id: string;
  readonly provider: ProviderName;
  readonly kind: Errand['kind'];
  readonly sealed: Buffer;
  readonly attempts: number;
  readonly created_at: Date;
}

export interface ErrandWorkDeps {
  readonly pool: () => Pool;
  readonly vault: Vault;
  readonly providers: { find(name: ProviderName): PaymentProvider | undefined };
  readonly clock: Clock;
  readonly log: Logger;
}

/** Runs errands until their provider has done or refused them. Each may be run twice: it is then done already. */
export function createErrandWork(deps: ErrandWorkDeps): DueWork {
  const { pool, log } = deps;
  const columns = 'id, provider, kind, sealed, attempts, created_at';
  const due = { table: 'errands', columns, leaseSeconds: LEASE_SECONDS };
  return createDueWork<ErrandRow>({
    name: 'errands',
    take: (limit) => takeDueRows<ErrandRow>({ ...due, pool: pool(), limit }),
    work: async (row) => end(deps, row, await run(deps, row)),
    concurrency: AT_ONCE,
    log,
  });
}

type Result = Outcome<unknown> | typeof NOT_OPENED;

/** The keys may come back. */
const NOT_OPENED = { outcome: 'failed', reason: 'not_opened', retryAfterMs: undefined } as const;

/** @returns undefined where the provider knows no such thing. */
async function run({ vault, providers }: ErrandWorkDeps, row: ErrandRow): Promise<Result | undefined> {
  const { kind, provider: name } = row;
  const provider = providers.find(name);
  // Its settings may come back.
  if (provider === undefined) return { outcome: 'failed', reason: 'unreachable' };
  const reference = referenceOf(vault, row);
  if (reference === undefined) return NOT_OPENED;
  return kind === 'close_checkout'
    ? provider.closeCheckout?.(reference)
    : provider.stored?.forget({ token: reference });
}

function referenceOf(vault: Vault, { id, sealed }: ErrandRow): string | undefined {
  try {
    return vault.open(sealed, errandContext(id)).toString();
  } catch {
    return undefined;
  }
}

async function end({ pool, clock, log }: ErrandWorkDeps, row: ErrandRow, result: Result | undefined) {
  const { id, provider, kind, attempts, created_at: createdAt } = row;
  const isOpen = result?.outcome === 'failed' || result?.outcome === 'unknown';
  if (!isOpen) {
    await pool().query('DELETE FROM errands WHERE id = $1', [id]);
    return;
  }
  const isLate = clock.now().getTime() - createdAt.getTime() > GIVE_UP_AFTER_MS;
  const delayMs = isLate ? undefined : Math.max(backoffMs(attempts, BACKOFF), result.retryAfterMs ?? 0);
  const told = { errandId: id, provider, kind, attempts, reason: result.reason };
  if (isLate) log.error(told, 'an errand is given up until a person sees to it');
  else log.warn(told, 'a provider has not run an errand');
  await pool().query(
    `UPDATE errands SET attempts = attempts + 1, reason = $3,
       due_at = now() + make_interval(secs => $2::double precision / 1000)
     WHERE id = $1`,
    [id, delayMs, result.reason],
  );
}
