import { errorMessage } from '@rollcall/platform/errors.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { Gauge, type Registry } from 'prom-client';
import type { Ledger } from './store.ts';

const DAY_MS = 24 * 3_600_000;
const RETRY_MS = 60_000;

export interface LedgerCheckDeps {
  readonly ledger: Ledger;
  readonly metrics: Registry;
  readonly log: Logger;
}

/** Looks once a day whether the ledger is as the database should keep it, and whether payments agree with it. */
export function createLedgerCheck({ ledger, metrics, log }: LedgerCheckDeps): Actor {
  const stopping = new AbortController();
  const faults = new Gauge({
    name: 'rollcall_payment_ledger_faults',
    help: 'Entries of two days and totals that do not sum to zero, and payments of two days that are not as their charges.',
    registers: [metrics],
  });
  let running: Promise<void> | undefined;

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) await sleep(await check(), stopping.signal);
  }

  /** @returns milliseconds until the next one. */
  async function check(): Promise<number> {
    try {
      const found = await ledger.faults();
      faults.set(found);
      if (found > 0) log.error({ faults: found }, 'the ledger is not as it should be');
      return DAY_MS;
    } catch (error) {
      log.warn({ message: errorMessage(error) }, 'the ledger could not be checked');
      return RETRY_MS;
    }
  }

  return {
    name: 'ledger-check',
    async start() {
      running ??= run();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
