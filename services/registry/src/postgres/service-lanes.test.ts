import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createServiceLanes, type ServiceLanes } from './service-lanes.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});

afterEach(() => {
  vi.useRealTimers();
});

const refused = (message: string) => ({ code: 'OVERLOADED', message });

/** Work that takes five seconds, and notes when it is begun. */
function slowWork(lanes: ServiceLanes) {
  const begun: string[] = [];
  const ask = (serviceName: string, name = serviceName) =>
    lanes.run(serviceName, async () => {
      begun.push(name);
      await new Promise((resolve) => setTimeout(resolve, 5000));
      return name;
    });
  return { begun, ask };
}

test('one of a service at a time, and no more services than there are lanes', async () => {
  const { begun, ask } = slowWork(createServiceLanes(2, 'too many'));
  const all = Promise.all([ask('a', 'a1'), ask('a', 'a2'), ask('b'), ask('c')]);
  await vi.advanceTimersByTimeAsync(0);
  expect(begun).toEqual(['a1', 'b']);
  await vi.advanceTimersByTimeAsync(5000);
  // The other service first, though it asked later.
  expect(begun).toEqual(['a1', 'b', 'c', 'a2']);
  await vi.advanceTimersByTimeAsync(5000);
  expect(await all).toEqual(['a1', 'a2', 'b', 'c']);
});

test('what fails frees a slot, too', async () => {
  const lanes = createServiceLanes(1, 'too many');
  await expect(lanes.run('a', () => Promise.reject(new Error('store away')))).rejects.toThrow('store away');
  expect(await lanes.run('a', async () => 'done')).toBe('done');
});

test('what has waited for ten seconds is refused and never begun', async () => {
  const { begun, ask } = slowWork(createServiceLanes(1, 'too many'));
  const answers = Array.from({ length: 4 }, (_, i) => ask('a', `a${i}`).catch((error: unknown) => error));
  await vi.advanceTimersByTimeAsync(60_000);
  const late = refused('Earlier calls are not finished in time: nothing was done; try again');
  expect(await Promise.all(answers)).toEqual([
    'a0',
    'a1',
    expect.objectContaining(late),
    expect.objectContaining(late),
  ]);
  expect(begun).toEqual(['a0', 'a1']);
  const next = ask('a', 'next');
  await vi.advanceTimersByTimeAsync(5000);
  expect(await next).toBe('next');
});

test('a hundred calls for one service leave places for the others', async () => {
  const { begun, ask } = slowWork(createServiceLanes(2, 'too many'));
  const answers = Array.from({ length: 100 }, () => ask('crowded').catch((error: unknown) => error));
  const others = [ask('b'), ask('c')];
  await vi.advanceTimersByTimeAsync(0);
  expect(begun).toEqual(['crowded', 'b']);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(await Promise.all(others)).toEqual(['b', 'c']);
  // One has its turn and twenty wait.
  const atOnce = (await Promise.all(answers)).filter((each) => each instanceof Error && each.message === 'too many');
  expect(atOnce).toHaveLength(79);
});

test('more than a hundred at all are refused at once, and taken when some have ended', async () => {
  const lanes = createServiceLanes(2, 'too many');
  const gate = Promise.withResolvers<string>();
  const all = Array.from({ length: 100 }, (_, i) => lanes.run(`service-${i % 10}`, () => gate.promise));
  await expect(lanes.run('another', async () => 'done')).rejects.toMatchObject(refused('too many'));
  gate.resolve('done');
  expect(await Promise.all(all)).toEqual(Array.from({ length: 100 }, () => 'done'));
  expect(await lanes.run('another', async () => 'done')).toBe('done');
});
