import { array, assert, boolean, constantFrom, integer, property, record } from 'fast-check';
import { expect, test } from 'vitest';
import type { Frame } from './channel-source.ts';
import { createTopic, type Topic } from './topic.ts';

interface Item {
  readonly name: string;
  readonly value: number;
}

function topicOf(capacity = 100): Topic<Item, 'removed'> {
  return createTopic<Item, 'removed'>({
    keyOf: ({ name }) => name,
    isSame: (a, b) => a.value === b.value,
    channelsOf: ({ name }) => ['all', `all.${name}`],
    payloadOf: ({ type, item }) => ({ type, ...item }),
    capacity,
  });
}

interface Message {
  readonly id?: string;
  readonly payload: { readonly type: string } & Partial<Item>;
}

const read = (frames: readonly Frame[]): Message[] => frames.map((frame) => JSON.parse(frame.toString()));
const told = (frames: readonly Frame[]) =>
  read(frames).map(({ id, payload: { type, name, value } }) =>
    [id, type, name, value].filter((x) => x !== undefined).join(' '),
  );

/** Somebody who subscribes. */
function listen(topic: Topic<Item, 'removed'>, channel = 'all', cursor?: string) {
  const frames: Frame[] = [];
  const resets: boolean[] = [];
  const stop = topic.subscribe(
    { channel, cursor },
    {
      begin(opening) {
        resets.push(opening.isReset);
        frames.push(...opening.frames);
      },
      next: (frame) => frames.push(frame),
      ready: () => Promise.resolve(),
    },
  );
  return { resets, stop, told: () => told(frames.splice(0)), take: () => frames.splice(0) };
}

const put = (type: 'added' | 'modified' | 'removed', [name, value]: readonly [string, number], cursor?: number) =>
  ({ type, item: { name, value }, cursor: cursor?.toString() }) as const;
/** Without the pauses. */
function apply(topic: Topic<Item, 'removed'>, event: Parameters<Topic<Item, 'removed'>['apply']>[0]): void {
  expect([...topic.apply(event)].length).toBeLessThan(2);
}

const synced = (cursor: number) => ({ type: 'synced', cursor: `${cursor}` }) as const;
const reset = { type: 'reset', cursor: undefined } as const;

function ready(capacity?: number): Topic<Item, 'removed'> {
  const topic = topicOf(capacity);
  topic.beginConnection();
  for (const event of [put('added', ['a', 1]), put('added', ['b', 1]), synced(10)]) apply(topic, event);
  return topic;
}

test('who subscribes before anything is known hears nothing, and then everything', () => {
  const topic = topicOf();
  const early = listen(topic);
  const resuming = listen(topic, 'all', '4');
  topic.beginConnection();
  apply(topic, put('added', ['a', 1]));
  expect(early.told()).toEqual([]);
  apply(topic, synced(10));
  expect(early.told()).toEqual(['added a 1', '10 synced']);
  expect(early.resets).toEqual([false]);
  expect(resuming.resets).toEqual([true]);
});

test('reports what changes with the cursor of the registry, to each channel its own', () => {
  const topic = ready();
  const all = listen(topic);
  const one = listen(topic, 'all.b');
  expect(all.told()).toEqual(['added a 1', 'added b 1', '10 synced']);
  expect(one.told()).toEqual(['added b 1', '10 synced']);
  apply(topic, put('modified', ['a', 2], 11));
  apply(topic, put('removed', ['b', 1], 12));
  apply(topic, put('modified', ['a', 2], 13));
  expect(all.told()).toEqual(['11 modified a 2', '12 removed b 1']);
  expect(one.told()).toEqual(['12 removed b 1']);
  expect(listen(topic, 'all.b').told()).toEqual(['13 synced']);
});

test('makes the bytes of an event once', () => {
  const topic = ready();
  const [first, second] = [listen(topic), listen(topic)];
  first.take();
  second.take();
  apply(topic, put('modified', ['a', 2], 11));
  const [one] = first.take();
  expect(one).toBeDefined();
  expect(second.take()[0]).toBe(one);
  expect(listen(topic, 'all', '10').take()[0]).toBe(one);
});

test('what a subscription begins with shares with others all that has not changed in between', () => {
  const topic = ready();
  const [a, b, end] = listen(topic).take();
  expect(listen(topic).take()).toEqual([a, b, end]);
  apply(topic, put('modified', ['a', 2], 11));
  const [changed, ...rest] = listen(topic).take();
  expect(read(changed === undefined ? [] : [changed])).toMatchObject([{ payload: { name: 'a', value: 2 } }]);
  expect(rest[0]).toBe(b);
  // Kept for long, so in memory of its own.
  expect(b?.buffer.byteLength).toBe(b?.length);
  // That of another channel says another channel.
  expect(read(listen(topic, 'all.b').take())[0]).toMatchObject({ channel: 'all.b', payload: { name: 'b' } });
});

test('the list of a channel in which nothing happened ends with the newest cursor all the same', () => {
  const topic = ready();
  const [before] = listen(topic, 'all.b').take();
  apply(topic, put('modified', ['a', 2], 11));
  const [after, end] = listen(topic, 'all.b').take();
  expect(after).toBe(before);
  expect(told(end === undefined ? [] : [end])).toEqual(['11 synced']);
});

test('resumes after a cursor; one that is not known resets', () => {
  const topic = ready();
  apply(topic, put('modified', ['a', 2], 11));
  apply(topic, put('modified', ['b', 2], 12));
  const resumed = listen(topic, 'all', '11');
  expect(resumed.told()).toEqual(['12 modified b 2', '12 synced']);
  expect(resumed.resets).toEqual([false]);
  for (const cursor of ['9', '99', '', 'x']) {
    const begun = listen(topic, 'all', cursor);
    expect(begun.resets).toEqual([true]);
    expect(begun.told()).toEqual(['added a 2', 'added b 2', '12 synced']);
  }
});

test('what a full list brings to light is reported, and repeated to who resumes from before it', () => {
  const topic = ready();
  const live = listen(topic);
  live.told();
  apply(topic, reset);
  apply(topic, put('added', ['c', 1]));
  apply(topic, put('added', ['b', 1]));
  expect(live.told()).toEqual(['10 added c 1']);
  apply(topic, synced(20));
  expect(live.told()).toEqual(['10 removed a 1']);
  expect(listen(topic, 'all', '10').told()).toEqual(['10 added c 1', '10 removed a 1', '20 synced']);
  expect(listen(topic, 'all', '20').told()).toEqual(['20 synced']);
  expect(listen(topic, 'all', '15').resets).toEqual([true]);
});

test('events are kept up to the capacity', () => {
  const topic = ready(2);
  for (let cursor = 11; cursor < 30; cursor += 1) apply(topic, put('modified', ['a', cursor], cursor));
  expect(listen(topic, 'all', '12').resets).toEqual([true]);
  expect(listen(topic, 'all', '28').told()).toEqual(['29 modified a 29', '29 synced']);
});

test('pauses between many; who comes meanwhile has the event already, and who leaves gets nothing', () => {
  const topic = ready();
  const many = Array.from({ length: 600 }, () => listen(topic));
  for (const each of many) each.take();
  const telling = topic.apply(put('modified', ['a', 2], 11));
  expect(telling.next().done).toBe(false);
  const late = listen(topic);
  many.at(-1)?.stop();
  expect([...telling]).toHaveLength(1);
  expect(late.told()).toEqual(['added a 2', 'added b 1', '11 synced']);
  expect(many.filter((each) => each.told().join() === '11 modified a 2')).toHaveLength(599);
});

test('who waited for the first list and leaves while others get it gets nothing', () => {
  const topic = topicOf();
  const many = Array.from({ length: 300 }, () => listen(topic));
  topic.beginConnection();
  apply(topic, put('added', ['a', 1]));
  const telling = topic.apply(synced(10));
  expect(telling.next().done).toBe(false);
  many.at(-1)?.stop();
  expect([...telling]).toEqual([]);
  expect(many.filter((each) => each.told().length === 2)).toHaveLength(299);
});

test('who unsubscribes hears no more', () => {
  const topic = ready();
  const listener = listen(topic);
  listener.take();
  listener.stop();
  apply(topic, put('modified', ['a', 2], 11));
  expect(listener.take()).toEqual([]);
});

test('whoever follows knows what the registry has, wherever either was interrupted', () => {
  const step = record({
    name: constantFrom('a', 'b', 'c'),
    value: integer({ min: 0, max: 2 }),
    removed: boolean(),
    relisted: boolean(),
    away: boolean(),
  });
  assert(
    property(array(step, { maxLength: 60 }), (steps) => {
      const topic = topicOf(3);
      const store = new Map<string, number>();
      let cursor: string | undefined;
      let known = new Map<string, number>();
      topic.beginConnection();
      apply(topic, synced(1));
      const take = (messages: readonly Message[]) => {
        for (const { id, payload } of messages) {
          const { type, name = '', value = 0 } = payload;
          if (type === 'removed') known.delete(name);
          else if (type !== 'synced') known.set(name, value);
          cursor = id ?? cursor;
        }
      };
      let follower: ReturnType<typeof listen> | undefined;
      for (const [index, { name, value, removed, relisted, away }] of steps.entries()) {
        const version = index + 2;
        if (removed && !store.has(name)) continue;
        if (removed) store.delete(name);
        else store.set(name, value);
        if (relisted) {
          apply(topic, reset);
          for (const [each, itsValue] of store) apply(topic, put('added', [each, itsValue]));
          apply(topic, synced(version));
        } else apply(topic, put(removed ? 'removed' : 'modified', [name, value], version));
        if (away) {
          follower?.stop();
          follower = undefined;
          continue;
        }
        if (follower === undefined) {
          follower = listen(topic, 'all', cursor);
          if (cursor === undefined || follower.resets[0] === true) known = new Map();
        }
        take(read(follower.take()));
        expect(known).toEqual(store);
      }
    }),
  );
});

test('an event that is kept keeps its own bytes alone', () => {
  const topic = ready();
  const listener = listen(topic);
  listener.take();
  apply(topic, put('modified', ['a', 2], 11));
  const [frame] = listener.take();
  expect(frame?.buffer.byteLength).toBe(frame?.length);
});
