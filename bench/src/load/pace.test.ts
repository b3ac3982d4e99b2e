import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { runAtPace, type Send } from './pace.ts';

it('sends every index once, and counts what failed', async () => {
  const seen: number[] = [];
  const send: Send = async (index) => {
    seen.push(index);
    return index === 3 ? 'none' : index === 4 ? 503 : 200;
  };
  const result = await runAtPace({ amount: 10 }, [send, send, send]);
  expect(seen.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(result).toMatchObject({ requests: 10, failures: 2, statuses: { 200: 8, 503: 1, none: 1 } });
});

const slow: Send = () => delay(20, 200);

it('counts latency from when a request was due, not from when a slow server let it be sent', async () => {
  const result = await runAtPace({ ratePerSecond: 200, durationMs: 50 }, [slow]);
  expect(result.requests).toBe(10);
  // The tenth is due at 45 ms and answered after ten times 20 ms.
  expect(result.latencyMs.max).toBeGreaterThan(140);
});

const slowAtFirst: Send = (index) => delay(index < 10 ? 1200 : 0, 200);

it('counts no latency while it settles, but the answers', async () => {
  const senders = Array.from({ length: 20 }, () => slowAtFirst);
  const result = await runAtPace({ ratePerSecond: 10, durationMs: 2000, settleMs: 1000 }, senders);
  expect(result).toMatchObject({ requests: 20, statuses: { 200: 20 } });
  expect(result.latencyMs.p50).toBeLessThan(1200);
});
