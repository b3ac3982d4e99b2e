import { expect, test } from 'vitest';
import { createRoom } from './room.ts';

const full = expect.objectContaining({ code: 'TOO_MANY_CONNECTIONS' });

test('what is still being decided about takes room, too', () => {
  const room = createRoom({ connections: 2, connectionsPerSubject: 9 });
  const release = room.reserve();
  const leave = room.take('a');
  expect(() => room.check()).toThrow(full);
  release();
  room.check();
  room.take('b');
  expect(() => room.check()).toThrow(full);
  leave();
  room.check();
  expect(room.size).toBe(1);
});

test('a subject has its own limit, and gives places back', () => {
  const room = createRoom({ connections: 9, connectionsPerSubject: 1 });
  const leave = room.take('a');
  expect(() => room.checkFor('a')).toThrow(expect.objectContaining({ code: 'RATE_LIMITED' }));
  room.checkFor('b');
  leave();
  room.checkFor('a');
});
