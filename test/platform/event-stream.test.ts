import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { type EventStream, openEventStream } from '../support/event-stream.ts';
import { type EventWorld, SCOPE, startEventWorld } from './webhooks.ts';

const stack = new AsyncDisposableStack();
let world: EventWorld;
let number = 0;
let subject: string;

beforeAll(async () => {
  world = stack.use(await startEventWorld());
});

afterAll(() => stack.disposeAsync());

beforeEach(() => {
  number += 1;
  subject = `shop-${number}`;
});

interface Opening {
  readonly as?: string;
  readonly after?: string;
  readonly at?: string;
}

async function open({ as = subject, after, at = world.service.service.url }: Opening = {}): Promise<EventStream> {
  return stack.use(await openEventStream(`${at}/api/v1/events`, after, await world.service.tokenOf(as, SCOPE)));
}

async function read(stream: EventStream, count: number): Promise<readonly (string | undefined)[]> {
  const ids: (string | undefined)[] = [];
  while (ids.length < count) ids.push((await stream.next()).id);
  return ids;
}

test('a subject follows its own events, from now on', async () => {
  await world.happen(subject, 'payment.succeeded');
  await world.settled();
  const stream = await open();
  expect(await stream.next()).toMatchObject({ type: 'synced', data: {} });
  await world.happen(`${subject}-2`, 'payment.succeeded');
  const [id = ''] = await world.happen(subject, 'payment.failed');
  expect(await stream.next()).toEqual({
    id,
    type: 'payment.failed',
    data: {
      id,
      type: 'payment.failed',
      timestamp: expect.any(String),
      data: { id: expect.any(String), number: 0 },
    },
  });
});

test('it goes on behind what it has read, at any replica', async () => {
  const other = stack.use(await world.service.startProcess());
  const first = await open();
  const synced = await first.next();
  const events = await world.happen(subject, 'payment.succeeded', 5);
  expect(await read(first, 5)).toEqual(events);
  const second = await open({ after: events[1] ?? '', at: other.url });
  expect((await second.until('synced')).map(({ id }) => id)).toEqual([...events.slice(2), events[4]]);
  const third = await open({ after: synced.id ?? '', at: other.url });
  expect((await third.until('synced')).map(({ id }) => id)).toEqual([...events, events[4]]);
  const [next] = await world.happen(subject, 'payment.failed');
  for (const stream of [first, second, third]) expect(await read(stream, 1)).toEqual([next]);
});

test('who has missed thousands gets them all, in their order', async () => {
  const events = await world.happen(subject, 'payment.succeeded', 5000);
  await world.settled();
  const stream = await open({ after: '0' });
  const missed = (await stream.until('synced')).map(({ id }) => id);
  expect(missed).toEqual([...events, events.at(-1)]);
});

test.each(['nothing', randomUUID(), 'ü', '1'])('a cursor that is not known (%s) begins anew', async (after) => {
  await world.happen(subject, 'payment.succeeded');
  const stream = await open({ after: encodeURIComponent(after) });
  expect((await stream.until('synced')).map(({ type }) => type)).toEqual(['reset', 'synced']);
});

test('the cursor of another subject is not known', async () => {
  const [id = ''] = await world.happen(`${subject}-2`, 'payment.succeeded', 2);
  const stream = await open({ after: id });
  expect((await stream.until('synced')).map(({ type }) => type)).toEqual(['reset', 'synced']);
});

test('what happens while a stream is opened comes once', async () => {
  const [opened, made] = await Promise.all([
    open({ after: '0' }),
    (async () => {
      const all: string[] = [];
      for (let round = 0; round < 30; round += 1) all.push(...(await world.happen(subject, 'payment.succeeded')));
      return all;
    })(),
  ]);
  const seen: (string | undefined)[] = [];
  while (seen.length < made.length) {
    const event = await opened.next();
    if (event.type !== 'synced') seen.push(event.id);
  }
  expect(seen).toEqual(made);
});

test('a subject has a hundred streams at a replica, and the scope for them', async () => {
  const streams = await Promise.all(Array.from({ length: 100 }, () => open()));
  await Promise.all(streams.map((stream) => stream.next()));
  const caller = await world.callerOf(subject);
  const refused = await caller.get('/events');
  expect(refused).toMatchObject({ status: 429, body: { error: { code: 'TOO_MANY_STREAMS' } } });
  expect(refused.headers.get('retry-after')).toBe('1');
  await streams[0]?.[Symbol.asyncDispose]();
  await vi.waitFor(async () => expect(await (await open()).next()).toMatchObject({ type: 'synced' }), {
    timeout: 30_000,
  });
  const writer = await world.service.callerOf(subject, 'payments:write');
  expect((await writer.get('/events')).status).toBe(403);
});

test('a database that is an older copy of itself ends the streams', async () => {
  const own = stack.use(await startEventWorld());
  await own.happen('shop', 'payment.succeeded', 3);
  await own.settled();
  const token = await own.service.tokenOf('shop', SCOPE);
  const stream = stack.use(await openEventStream(`${own.service.service.url}/api/v1/events`, undefined, token));
  await stream.next();
  await own.pool.query('TRUNCATE events CASCADE; UPDATE event_relay SET last_position = 1');
  await expect(stream.end()).resolves.toBeUndefined();
});

test('a service that stops ends them', async () => {
  const own = stack.use(await startEventWorld());
  const token = await own.service.tokenOf('shop', SCOPE);
  const stream = stack.use(await openEventStream(`${own.service.service.url}/api/v1/events`, undefined, token));
  await stream.next();
  const [stopped] = await Promise.all([own.service.service[Symbol.asyncDispose](), stream.end()]);
  expect(stopped).toBeUndefined();
});
