import { array, assert, boolean, constantFrom, property, record } from 'fast-check';
import { expect, test } from 'vitest';
import { createRegistrationFeed, type RegistrationFeed } from '../registrations/domain/feed.ts';
import type { Registration } from '../registrations/domain/registration.ts';
import { createFeed, type FeedEvent as EventOf } from './feed.ts';

type FeedEvent = EventOf<Registration>;

function registration(serviceName: string, version: number, more: Partial<Registration> = {}): Registration {
  return {
    serviceName,
    url: 'http://a',
    id: `${serviceName}-1`,
    serviceId: more.id ?? `${serviceName}-1`,
    health: undefined,
    createdAt: new Date(0),
    capabilities: [],
    source: 'API',
    ttlSeconds: 60,
    registeredAt: new Date(0),
    phase: 'Registered',
    currentVersion: undefined,
    owner: undefined,
    version,
    ...more,
  };
}

function apply(feed: RegistrationFeed, state: Registration, deleted = false): void {
  feed.apply({ version: state.version, item: state, deleted });
}

test('what is made anew under the same name is the same to subscribers, with another id', () => {
  const feed = createRegistrationFeed(10);
  const heard: FeedEvent[] = [];
  feed.subscribe((event) => heard.push(event));
  feed.replace([registration('a', 1)], 1);
  feed.replace([registration('a', 3, { id: 'a-2' })], 4);
  expect(told(heard)).toEqual(['0 added a', '1 modified a']);
  expect(feed.snapshot()).toMatchObject([{ version: 4, item: { id: 'a-2' } }]);
  feed.replace([registration('a', 5, { id: 'a-3', phase: 'Expired' })], 6);
  expect(told(heard)?.at(-1)).toBe('4 expired a');
});

test('everything is there where nothing says otherwise, and a change from before the list is none', () => {
  const feed = createFeed<{ readonly key: string }>({ capacity: 10, keyOf: ({ key }) => key, show: JSON.stringify });
  expect(feed.version).toBe(0);
  feed.replace([{ key: 'a' }], 2);
  feed.apply({ version: 2, item: { key: 'late' }, deleted: false });
  feed.apply({ version: 3, item: { key: 'a' }, deleted: true });
  expect(feed.since(2)).toEqual([{ version: 3, type: 'removed', item: { key: 'a' } }]);
});

const told = (events: readonly FeedEvent[] | undefined) =>
  events?.map(({ version, type, item: { serviceName } }) => `${version} ${type} ${serviceName}`);

test('reports added, modified, expired and removed, and nothing about changes that nobody can see', () => {
  const feed = createRegistrationFeed(10);
  feed.replace([], 1);
  apply(feed, registration('a', 2));
  apply(feed, registration('a', 3));
  apply(feed, registration('a', 4, { url: 'http://b' }));
  apply(feed, registration('b', 5));
  apply(feed, registration('a', 6, { phase: 'Expired' }));
  apply(feed, registration('a', 7, { phase: 'Expired' }), true);
  apply(feed, registration('b', 8), true);
  expect(told(feed.since(1))).toEqual(['2 added a', '4 modified a', '5 added b', '6 expired a', '8 removed b']);
});

test('a subscriber resumes exactly after its version, on any replica that knows it', () => {
  const replicas = [createRegistrationFeed(10), createRegistrationFeed(10)];
  for (const [index, feed] of replicas.entries()) {
    feed.replace([], index);
    for (let version = 2; version < 8; version += 1) apply(feed, registration(`s${version}`, version));
    expect(told(feed.since(5))).toEqual(['6 added s6', '7 added s7']);
    expect(feed.since(7)).toEqual([]);
  }
  expect(replicas[1]?.since(0)).toBeUndefined();
});

test('a version from before the ring, or from a replica that is ahead, cannot be resumed from', () => {
  const feed = createRegistrationFeed(2);
  feed.replace([], 1);
  for (let version = 2; version < 20; version += 1) apply(feed, registration(`s${version}`, version));
  expect(feed.since(3)).toBeUndefined();
  expect(feed.since(18)).toHaveLength(1);
  expect(feed.since(100)).toBeUndefined();
});

test('a bookmark is a version to resume from, though no event says so, and neither hides an event nor becomes an id', () => {
  const feed = createRegistrationFeed(10);
  feed.replace([], 1);
  apply(feed, registration('a', 2));
  feed.reach(50);
  expect(feed.since(50)).toEqual([]);
  expect(feed.since(51)).toBeUndefined();
  expect([feed.version, feed.reached]).toEqual([2, 50]);
  apply(feed, registration('b', 51));
  expect(told(feed.since(2))).toEqual(['51 added b']);
  expect(feed.since(50)).toEqual(feed.since(2));
});

test('a new list reports the differences to listeners and makes others begin anew', () => {
  const feed = createRegistrationFeed(10);
  feed.replace([registration('kept', 1), registration('gone', 2), registration('changed', 3)], 5);
  const heard: FeedEvent[] = [];
  feed.subscribe((event) => heard.push(event));
  feed.replace([registration('kept', 1), registration('changed', 8, { url: 'http://b' }), registration('new', 9)], 10);
  expect(heard.map(({ type, item: { serviceName } }) => `${type} ${serviceName}`)).toEqual([
    'removed gone',
    'modified changed',
    'added new',
  ]);
  for (const { version } of heard) expect(feed.since(version)).toBeUndefined();
  expect(feed.since(10)).toEqual([]);
});

test('whoever follows a snapshot and the events has what the store has, wherever it was interrupted', () => {
  const step = record({
    name: constantFrom('a', 'b', 'c'),
    phase: constantFrom('Registered' as const, 'Expired' as const),
    deleted: boolean(),
    interrupted: boolean(),
    relisted: boolean(),
  });
  assert(
    property(array(step, { maxLength: 60 }), (steps) => {
      const feed = createRegistrationFeed(4);
      const store = new Map<string, Registration>();
      const follower = new Set<string>();
      let cursor = 0;
      let lives = 0;
      feed.replace([], 1);
      const follow = (events: readonly FeedEvent[]) => {
        for (const {
          type,
          item: { serviceName },
          version,
        } of events) {
          if (type === 'added' || type === 'modified') follower.add(serviceName);
          else follower.delete(serviceName);
          cursor = version;
        }
      };
      for (const [index, { name, phase, deleted, interrupted, relisted }] of steps.entries()) {
        const version = index + 2;
        const known = store.get(name);
        if (deleted && known === undefined) continue;
        if (known === undefined || known.phase === 'Expired') lives += 1;
        const next = registration(name, version, {
          phase,
          id: known?.phase === 'Registered' ? known.id : `life-${lives}`,
        });
        if (deleted) store.delete(name);
        else store.set(name, next);
        if (relisted) feed.replace([...store.values()], version);
        else apply(feed, deleted ? { ...(known ?? next), version } : next, deleted);
        if (interrupted) continue;
        const missed = feed.since(cursor);
        if (missed === undefined) {
          follower.clear();
          follow(feed.snapshot());
          cursor = feed.version;
        } else follow(missed);
        const expected = [...store.values()]
          .filter((each) => each.phase === 'Registered')
          .map((each) => each.serviceName);
        expect([...follower].sort()).toEqual(expected.sort());
      }
    }),
  );
});
