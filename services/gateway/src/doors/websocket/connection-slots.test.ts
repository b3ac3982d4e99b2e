import { expect, test } from 'vitest';
import { createConnectionSlots } from './connection-slots.ts';

const full = expect.objectContaining({ code: 'TOO_MANY_CONNECTIONS' });

test('what is still being decided about uses a slot, too', () => {
  const slots = createConnectionSlots({ connections: 2, connectionsPerSubject: 9 });
  const release = slots.reserve();
  const leave = slots.acquire('a');
  expect(() => slots.check()).toThrow(full);
  release();
  slots.check();
  slots.acquire('b');
  expect(() => slots.check()).toThrow(full);
  leave();
  slots.check();
  expect(slots.size).toBe(1);
});

test('a subject has its own limit, and gives places back', () => {
  const slots = createConnectionSlots({ connections: 9, connectionsPerSubject: 1 });
  const leave = slots.acquire('a');
  expect(() => slots.checkFor('a')).toThrow(expect.objectContaining({ code: 'RATE_LIMITED' }));
  slots.checkFor('b');
  leave();
  slots.checkFor('a');
});
