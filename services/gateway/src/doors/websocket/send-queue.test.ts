import { array, assert, constantFrom, integer, property, record } from 'fast-check';
import { expect, test } from 'vitest';
import { createSendQueue } from './send-queue.ts';

const frame = (length: number) => Buffer.alloc(length);

test('what the socket takes is sent at once', () => {
  const queue = createSendQueue({ windowBytes: 10, limitBytes: 100 });
  expect(queue.offer(frame(500), 0)).toBe('send');
  expect(queue.offer(frame(1), 9)).toBe('send');
  expect(queue.isEmpty()).toBe(true);
});

test('what it does not take waits in order, up to the limit', () => {
  const queue = createSendQueue({ windowBytes: 10, limitBytes: 50 });
  const [first, second] = [frame(20), frame(20)];
  expect(queue.offer(first, 10)).toBe('wait');
  expect(queue.offer(second, 10)).toBe('wait');
  expect(queue.offer(frame(11), 10)).toBe('overflow');
  expect(queue.next(10)).toEqual([]);
  const taken = queue.next(0);
  expect(taken).toHaveLength(1);
  expect(taken[0]).toBe(first);
  // Nothing overtakes.
  expect(queue.offer(frame(1), 0)).toBe('wait');
  expect(queue.next(0)[0]).toBe(second);
});

test('a backlog does not make anybody slow, and can be forgotten', () => {
  const queue = createSendQueue({ windowBytes: 10, limitBytes: 50 });
  const forget = queue.keepBacklog(Array.from({ length: 100 }, () => frame(10)));
  const live = frame(40);
  expect(queue.offer(live, 0)).toBe('wait');
  expect(queue.next(0)).toHaveLength(1);
  expect(queue.offer(frame(11), 0)).toBe('overflow');
  forget();
  expect(queue.next(0)).toEqual([live]);
  expect(queue.isEmpty()).toBe(true);
});

test('whatever the socket takes, frames come out once and in order, and what waits stays below the limit', () => {
  const step = record({
    bytes: integer({ min: 1, max: 30 }),
    drained: integer({ min: 0, max: 60 }),
    kind: constantFrom('live', 'backlog'),
  });
  assert(
    property(array(step, { maxLength: 80 }), (steps) => {
      const queue = createSendQueue({ windowBytes: 20, limitBytes: 100 });
      const offered: Buffer[] = [];
      const live = new Set<Buffer>();
      const sent: Buffer[] = [];
      let buffered = 0;
      const send = (frames: readonly Buffer[]) => {
        for (const each of frames) {
          sent.push(each);
          buffered += each.length;
        }
      };
      for (const { bytes, drained, kind } of steps) {
        const next = frame(bytes);
        if (kind === 'backlog') {
          queue.keepBacklog([next, next]);
          offered.push(next, next);
        } else {
          const verdict = queue.offer(next, buffered);
          if (verdict === 'send') send([next]);
          live.add(next);
          if (verdict !== 'overflow') offered.push(next);
        }
        const waiting = offered.slice(sent.length).filter((each) => live.has(each));
        expect(waiting.reduce((sum, { length }) => sum + length, 0)).toBeLessThanOrEqual(100);
        buffered = Math.max(0, buffered - drained);
        send(queue.next(buffered));
        expect(buffered).toBeLessThan(20 + 30);
      }
      buffered = 0;
      while (!queue.isEmpty()) {
        send(queue.next(0));
        buffered = 0;
      }
      expect(sent.length).toBe(offered.length);
      expect(sent.every((each, index) => each === offered[index])).toBe(true);
    }),
  );
});
