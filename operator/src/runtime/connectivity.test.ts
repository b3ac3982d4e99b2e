import type { Connectivity } from '@rollcall/platform/kube/informer.ts';
import { expect, test } from 'vitest';
import { informerConnectivity } from './connectivity.ts';

function source() {
  const listeners: ((connectivity: Connectivity) => void)[] = [];
  let now: Connectivity = 'disconnected';
  return {
    connectivity: () => now,
    onConnectivity: (listener: (connectivity: Connectivity) => void) => void listeners.push(listener),
    set(next: Connectivity) {
      now = next;
      for (const listener of listeners) listener(next);
    },
  };
}

test('sees from when the last informer connected until the first one is lost', () => {
  let nowMs = 0;
  const [a, b] = [source(), source()];
  const connectivity = informerConnectivity([a, b], { now: () => new Date(0), monotonicMs: () => nowMs });
  const at = (ms: number, act: () => void) => {
    nowMs = ms;
    act();
    return connectivity.sinceMs();
  };
  expect(connectivity.sinceMs()).toBeUndefined();
  expect(at(10, () => a.set('connected'))).toBeUndefined();
  expect(at(20, () => b.set('connected'))).toBe(20);
  expect(at(30, () => {})).toBe(20);
  expect(at(40, () => a.set('disconnected'))).toBeUndefined();
  expect(at(50, () => b.set('disconnected'))).toBeUndefined();
  expect(at(60, () => a.set('connected'))).toBeUndefined();
  expect(at(70, () => b.set('connected'))).toBe(70);
});
