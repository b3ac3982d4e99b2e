import { expect, test } from 'vitest';
import { createStreamPlaces, type StreamCaller, type StreamPlaces } from './stream-limits.ts';

const client = (name: string): StreamCaller => ({ name, isForwarded: true });
const account = (name: string): StreamCaller => ({ name, isForwarded: false });

/** @returns what was taken until the caller got no more, and why it did not. */
function takeAll(places: StreamPlaces, caller: StreamCaller) {
  const taken: (() => void)[] = [];
  try {
    for (;;) taken.push(places.take(caller));
  } catch (refusal) {
    return { taken, refusal };
  }
}

test('a client of the gateway has a share, and gets a place again for one that it gives back', () => {
  const places = createStreamPlaces();
  const { taken, refusal } = takeAll(places, client('one'));
  expect([taken.length, refusal]).toEqual([100, expect.objectContaining({ code: 'STREAM_SHARE_TAKEN' })]);
  expect(takeAll(places, client('other')).taken).toHaveLength(100);
  const [leave] = taken;
  leave?.();
  // Once is once.
  leave?.();
  expect(takeAll(places, client('one')).taken).toHaveLength(1);
  expect(places.size).toBe(200);
});

test('clients of the gateway together leave places to those who come directly', () => {
  const places = createStreamPlaces();
  for (let index = 0; index < 5; index += 1) takeAll(places, client(`client ${index}`));
  expect(places.size).toBe(500);
  expect(() => places.take(client('late'))).toThrow(expect.objectContaining({ code: 'STREAM_SHARE_TAKEN' }));
  // Of the same name, but not the same.
  expect(takeAll(places, account('client 0')).taken).toHaveLength(250);
});

test('where all is taken, 503 is for those who come directly: a gateway would take it for an illness', () => {
  const places = createStreamPlaces();
  const [{ taken }] = [0, 1, 2, 3].map((index) => takeAll(places, account(`account ${index}`))) as [
    ReturnType<typeof takeAll>,
  ];
  expect(places.size).toBe(1000);
  expect(() => places.take(account('late'))).toThrow(expect.objectContaining({ code: 'TOO_MANY_STREAMS' }));
  expect(() => places.take(client('late'))).toThrow(expect.objectContaining({ code: 'STREAM_SHARE_TAKEN' }));
  for (const leave of taken) leave();
  expect(takeAll(places, account('late')).taken).toHaveLength(250);
});
