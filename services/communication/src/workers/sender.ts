import { createDueWork, type DueWork } from '@rollcall/platform/postgres/due-work.ts';
import { isDatabaseUnavailable } from '@rollcall/platform/postgres/pool.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { backoffMs, sleep } from '@rollcall/platform/retry.ts';
import { type DeliveryDeps, deliver } from '../domain/delivery.ts';
import { type Channel, channels } from '../domain/messages.ts';
import { createLargeTurns } from './large-turns.ts';

/** Calls of a channel at a time, of one replica. */
const CONCURRENCY = 40;
/** A database that restarts is back within it. */
const PERSIST_FOR_MS = 30_000;
/** From here on a content counts as large, in bytes. */
const LARGE_BYTES = 256 * 1024;
const PERSIST = { baseMs: 50, maxMs: 2000 };

export interface SenderOptions extends Omit<DeliveryDeps, 'persist'> {
  readonly log: Logger;
}

/** Sends what is due, each channel by itself: a provider that hangs holds up no other channel. */
export function createSenders(options: SenderOptions): ReadonlyMap<Channel, DueWork> {
  const { store, log } = options;
  const deps = { ...options, persist: createPersist(options) };
  const large = createLargeTurns(options.clock);
  return new Map(
    channels.map((channel) => [
      channel,
      createDueWork({
        name: `sender-${channel}`,
        take: (limit) => store.take(channel, limit),
        async work(due, signal) {
          if (due.contentBytes < LARGE_BYTES) return deliver(deps, due, signal);
          const turn = large.tryEnter(due);
          if ('backInMs' in turn) return store.putOff(due.id, { state: due.state, dueInMs: turn.backInMs });
          try {
            return await deliver(deps, due, signal);
          } finally {
            turn.leave();
          }
        },
        concurrency: CONCURRENCY,
        log,
      }),
    ]),
  );
}

function createPersist({ clock }: SenderOptions): DeliveryDeps['persist'] {
  return async (work) => {
    const untilMs = clock.monotonicMs() + PERSIST_FOR_MS;
    for (let failures = 0; ; failures += 1) {
      try {
        return await work();
      } catch (error) {
        if (!isDatabaseUnavailable(error) || clock.monotonicMs() >= untilMs) throw error;
        await sleep(backoffMs(failures, PERSIST));
      }
    }
  };
}
