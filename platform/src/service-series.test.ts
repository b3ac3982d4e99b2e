import { Counter, Histogram, Registry } from 'prom-client';
import { expect, test } from 'vitest';
import { forgetGoneServices } from './service-series.ts';

test('series go two minutes after their service, unless it comes back', async () => {
  let nowMs = 0;
  const registered = new Set(['shop', 'lms']);
  const registers = [new Registry()];
  const count = new Counter({ name: 'count', help: '-', labelNames: ['service', 'code'], registers });
  const duration = new Histogram({ name: 'duration', help: '-', labelNames: ['service'], registers });
  const clock = { now: () => new Date(nowMs), monotonicMs: () => nowMs };
  const sweep = forgetGoneServices([count, duration], { isKnown: (name) => registered.has(name), clock });
  for (const service of registered) {
    count.inc({ service, code: 'OK' });
    duration.observe({ service }, 1);
  }
  const left = async () => {
    const values = [await count.get(), await duration.get()].flatMap(({ values }) => values);
    return new Set(values.map(({ labels }) => labels.service));
  };
  const sleep = async (ms: number) => {
    nowMs += ms;
    await sweep();
  };
  registered.delete('shop');
  await sleep(0);
  await sleep(100_000);
  registered.add('shop');
  await sleep(50_000);
  registered.delete('shop');
  await sleep(30_000);
  await sleep(119_000);
  expect(await left()).toEqual(new Set(['shop', 'lms']));
  await sleep(1000);
  expect(await left()).toEqual(new Set(['lms']));
});
