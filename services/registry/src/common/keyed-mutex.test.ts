import { expect, test } from 'vitest';
import { createKeyedMutex } from './keyed-mutex.ts';

test('work for one key is serial, even after a failure; other keys do not wait', async () => {
  const mutex = createKeyedMutex();
  const order: string[] = [];
  const gate = Promise.withResolvers<void>();
  const first = mutex.run('a', async () => {
    await gate.promise;
    order.push('a1');
    throw new Error('a1 failed');
  });
  const second = mutex.run('a', async () => void order.push('a2'));
  await mutex.run('b', async () => void order.push('b1'));
  gate.resolve();
  await expect(first).rejects.toThrow('a1 failed');
  await second;
  expect(order).toEqual(['b1', 'a1', 'a2']);
});
