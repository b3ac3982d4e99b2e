import { quantile } from './statistics.ts';
import type { LoadResult, Pace } from './tasks.ts';

/**
 * Sends one request; resolves with its HTTP status, or with `none` when there was no answer. Never
 * rejects.
 */
export type Send = (index: number) => Promise<number | 'none'>;

/** Sends by the pace over so many senders, each of which has one request under way at a time. */
export async function runAtPace(pace: Pace, senders: readonly Send[]): Promise<LoadResult> {
  const statuses = new Map<number | 'none', number>();
  const latencies: number[] = [];
  const startedAtMs = performance.now();
  const countsFromMs = startedAtMs + ('settleMs' in pace ? (pace.settleMs ?? 0) : 0);
  const cpuBefore = process.cpuUsage();
  let answers = 0;

  async function one(send: Send, index: number, dueAtMs: number): Promise<void> {
    const status = await send(index);
    if (dueAtMs >= countsFromMs) latencies.push(performance.now() - dueAtMs);
    answers += 1;
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }

  if ('amount' in pace) await closedLoop(pace.amount, senders, one);
  else await openLoop(pace, senders, one);

  const elapsedMs = performance.now() - startedAtMs;
  const cpu = process.cpuUsage(cpuBefore);
  let failures = 0;
  for (const [status, count] of statuses) if (status === 'none' || status < 200 || status > 299) failures += count;
  return {
    requests: answers,
    failures,
    statuses: Object.fromEntries(statuses),
    startedAtMs: performance.timeOrigin + startedAtMs,
    elapsedMs,
    perSecond: (answers / elapsedMs) * 1000,
    latencyMs: { p50: quantile(latencies, 0.5), p99: quantile(latencies, 0.99), max: quantile(latencies, 1) },
    generatorCpuMs: (cpu.user + cpu.system) / 1000,
  };
}

type One = (send: Send, index: number, dueAtMs: number) => Promise<void>;

async function closedLoop(amount: number, senders: readonly Send[], one: One): Promise<void> {
  let next = 0;
  await Promise.all(
    senders.map(async (send) => {
      while (next < amount) {
        const index = next;
        next += 1;
        await one(send, index, performance.now());
      }
    }),
  );
}

/** What is due while all senders are busy waits, and its latency grows. */
async function openLoop(
  { ratePerSecond, durationMs }: Extract<Pace, { ratePerSecond: number }>,
  senders: readonly Send[],
  one: One,
): Promise<void> {
  const idle = [...senders];
  const total = Math.round((ratePerSecond * durationMs) / 1000);
  const startedAtMs = performance.now();
  const dueAtMs = (index: number): number => startedAtMs + (index * 1000) / ratePerSecond;
  const finished = Promise.withResolvers<void>();
  let next = 0;
  let answered = 0;

  function pump(): void {
    const nowMs = performance.now();
    while (next < total && dueAtMs(next) <= nowMs) {
      const send = idle.pop();
      if (send === undefined) return;
      const index = next;
      next += 1;
      void exchange(send, index);
    }
  }

  async function exchange(send: Send, index: number): Promise<void> {
    await one(send, index, dueAtMs(index));
    answered += 1;
    if (answered === total) finished.resolve();
    idle.push(send);
    pump();
  }

  const timer = setInterval(pump, 1);
  pump();
  await finished.promise;
  clearInterval(timer);
}
