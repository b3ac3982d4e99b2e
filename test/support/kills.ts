import { setTimeout as sleep } from 'node:timers/promises';
import * as fc from 'fast-check';
import { vi } from 'vitest';
import type { Replica } from './replica.ts';
import type { Supervised } from './supervised.ts';

/** What is killed by SIGKILL, and comes back. */
export interface Victim {
  kill(): Promise<void>;
  /** Starts it again; what does so by itself has none. */
  readonly start?: () => Promise<void>;
}

export interface KillsOptions {
  /** Each is killed once before any is killed again. */
  readonly victims: readonly Victim[];
  readonly rounds: number;
  /** How much of the load has had its effect. */
  readonly progress: () => number;
  /** Before each kill. */
  readonly onRound?: () => Promise<void>;
}

const SEED_VARIABLE = 'ROLLCALL_KILLS_SEED';
/** Of the load, between two rounds. */
const LEAST_PROGRESS = 10;
const PROGRESS_WITHIN_MS = 240_000;
/** Within it there are always some calls under way. */
const moment = fc.record({ afterMs: fc.nat(1500), downMs: fc.nat(1000) });

/**
 * Kills by turns at random moments while the load goes on. Each round waits until some load went
 * through after the last one. It prints its seed; `ROLLCALL_KILLS_SEED` has the same moments again.
 */
export async function killInRounds({ victims, rounds, progress, onRound }: KillsOptions): Promise<void> {
  const seed = Number(process.env[SEED_VARIABLE] ?? Math.trunc(Math.random() * 2 ** 31));
  console.error(`${rounds} kills with ${SEED_VARIABLE}=${seed}`);
  const order = fc.shuffledSubarray([...victims], { minLength: victims.length });
  const turns = fc.sample(order, { seed, numRuns: Math.ceil(rounds / victims.length) }).flat();
  const moments = fc.sample(moment, { seed, numRuns: rounds });
  for (const [round, { afterMs, downMs }] of moments.entries()) {
    const enough = progress() + LEAST_PROGRESS;
    await vi.waitUntil(() => progress() >= enough, { timeout: PROGRESS_WITHIN_MS, interval: 20 });
    await onRound?.();
    await sleep(afterMs);
    if (round > 0 && round % 25 === 0) console.error(`${round} kills so far`);
    const victim = turns[round];
    await victim?.kill();
    await sleep(downMs);
    await victim?.start?.();
  }
}

/** A replica that comes back by itself. One that is not back yet is waited for. */
export function victimOf(replica: Supervised): Victim {
  let killed: Replica | undefined;
  return {
    async kill() {
      await vi.waitUntil(() => replica.current !== killed, { timeout: PROGRESS_WITHIN_MS, interval: 20 });
      killed = replica.current;
      await killed.process.stop({ signal: 'SIGKILL' });
    },
  };
}

/** Lanes of a load, each of which does one thing after the other. */
export interface Load {
  /** How often something was done. @throws what a lane failed with. */
  readonly done: () => number;
  /** Lets each lane end what it has begun. @throws as `done`. */
  stop(): Promise<void>;
}

/** @param act does one thing, and pauses as it likes. */
export function startLoad(lanes: number, act: (lane: number, turn: number) => Promise<void>): Load {
  const stopping = new AbortController();
  let turns = 0;
  const failures: unknown[] = [];
  const run = async (lane: number): Promise<void> => {
    for (let turn = 0; !stopping.signal.aborted; turn += 1) {
      await act(lane, turn);
      turns += 1;
    }
  };
  const running = Array.from({ length: lanes }, (_, lane) => run(lane).catch((error: unknown) => failures.push(error)));
  const done = (): number => {
    if (failures.length > 0) throw new AggregateError(failures, 'the load failed');
    return turns;
  };
  return {
    done,
    async stop() {
      stopping.abort();
      await Promise.all(running);
      done();
    },
  };
}
