import { expect, test } from 'vitest';
import { createStreamLimits, type StreamCaller, type StreamLimits } from './stream-limits.ts';

const client = (name: string): StreamCaller => ({ name, isForwarded: true });
const account = (name: string): StreamCaller => ({ name, isForwarded: false });

/** @returns what was taken until the caller got no more, and why it did not. */
function takeAll(limits: StreamLimits, caller: StreamCaller) {
  const taken: (() => void)[] = [];
  try {
    for (;;) taken.push(limits.acquire(caller));
  } catch (refusal) {
    return { taken, refusal };
  }
}

test('a client of the gateway has a share, and gets a place again for one that it gives back', () => {
  const limits = createStreamLimits();
  const { taken, refusal } = takeAll(limits, client('one'));
  expect([taken.length, refusal]).toEqual([100, expect.objectContaining({ code: 'STREAM_SHARE_USED' })]);
  expect(takeAll(limits, client('other')).taken).toHaveLength(100);
  const [leave] = taken;
  leave?.();
  // Once is once.
  leave?.();
  expect(takeAll(limits, client('one')).taken).toHaveLength(1);
});

test('clients of the gateway together leave limits to direct callers', () => {
  const limits = createStreamLimits();
  for (let index = 0; index < 5; index += 1) takeAll(limits, client(`client ${index}`));
  expect(() => limits.acquire(client('late'))).toThrow(expect.objectContaining({ code: 'STREAM_SHARE_USED' }));
  // Of the same name, but not the same.
  expect(takeAll(limits, account('client 0')).taken).toHaveLength(250);
});

test('where all are in use, 503 is for direct callers: a gateway would count the replica as ill', () => {
  const limits = createStreamLimits();
  const [{ taken }] = [0, 1, 2, 3].map((index) => takeAll(limits, account(`account ${index}`))) as [
    ReturnType<typeof takeAll>,
  ];
  expect(() => limits.acquire(account('late'))).toThrow(expect.objectContaining({ code: 'TOO_MANY_STREAMS' }));
  expect(() => limits.acquire(client('late'))).toThrow(expect.objectContaining({ code: 'STREAM_SHARE_USED' }));
  for (const leave of taken) leave();
  expect(takeAll(limits, account('late')).taken).toHaveLength(250);
});
