import { expect, test } from 'vitest';
import { createServiceSeries } from './service-series.ts';

function start() {
  let nowMs = 0;
  const registered = new Set(['shop']);
  const series = new Set<string>();
  const kept = createServiceSeries<string>({
    isKnown: (service) => registered.has(service),
    clock: { now: () => new Date(nowMs), monotonicMs: () => nowMs },
  });
  const of = (service: string, key: string) =>
    kept.of(service, key, () => {
      const name = `${service} ${key}`;
      series.add(name);
      return { child: name, remove: () => series.delete(name) };
    });
  const sleep = (ms: number) => {
    nowMs += ms;
    kept.sweep();
  };
  return { of, sleep, registered, series };
}

test('a service has each of its series once, and none before it is registered', () => {
  const { of, series, registered } = start();
  expect([of('shop', 'GET'), of('shop', 'GET'), of('shop', 'PUT'), of('nobody', 'GET')]).toEqual([
    'shop GET',
    'shop GET',
    'shop PUT',
    undefined,
  ]);
  registered.add('nobody');
  expect(of('nobody', 'GET')).toBe('nobody GET');
  expect([...series]).toEqual(['shop GET', 'shop PUT', 'nobody GET']);
});

test('they go two minutes after the service, unless it comes back', () => {
  const { of, sleep, series, registered } = start();
  of('shop', 'GET');
  registered.clear();
  sleep(0);
  sleep(100_000);
  registered.add('shop');
  sleep(50_000);
  registered.clear();
  sleep(30_000);
  sleep(119_000);
  expect(of('shop', 'GET')).toBe('shop GET');
  expect(series.size).toBe(1);
  sleep(1000);
  expect(series.size).toBe(0);
  expect(of('shop', 'GET')).toBeUndefined();
});
