import { expect, test } from 'vitest';
import { catchUp } from './catch-up.ts';
import { createFeed } from './feed.ts';

/** A feed that knows everything up to 95. */
function feedAt95() {
  const feed = createFeed<string>({ capacity: 10, keyOf: String, show: String });
  feed.replace([], 90);
  feed.reach(95);
  return feed;
}

function apply(feed: ReturnType<typeof feedAt95>, version: number): void {
  feed.apply({ version, item: String(version), deleted: false });
}

const away = Promise.reject<number>(new Error('away'));
away.catch(() => undefined);
const never = new Promise<number>(() => undefined);

/** What becomes of a subscriber that knows of 100. */
function waiting(newest: Promise<number>, feed = feedAt95()) {
  const gone = new AbortController();
  let isConnected = true;
  const source = { connected: () => isConnected, newestVersion: () => newest };
  const startedAt = performance.now();
  const outcome = catchUp(feed, 100, { source, signal: gone.signal }).then(
    () => feed.since(100),
    (error: { readonly code: string }) => error.code,
  );
  return {
    feed,
    outcome,
    elapsedMs: () => performance.now() - startedAt,
    leave: () => gone.abort(),
    disconnect: () => {
      isConnected = false;
    },
  };
}

test('who knows nothing that is not known here does not wait, even where the store is unavailable', async () => {
  const source = { connected: () => false, newestVersion: () => away };
  const { signal } = new AbortController();
  await expect(catchUp(feedAt95(), 95, { source, signal })).resolves.toBeUndefined();
});

test.each<[string, (feed: ReturnType<typeof feedAt95>) => void]>([
  ['an event', (feed) => apply(feed, 100)],
  ['a bookmark', (feed) => feed.reach(120)],
])('who is ahead waits until %s has brought the feed there', async (_, bring) => {
  const { feed, outcome, elapsedMs } = waiting(Promise.resolve(110));
  apply(feed, 99);
  setTimeout(() => bring(feed), 200);
  expect(await outcome).toEqual([]);
  expect(elapsedMs()).toBeGreaterThan(150);
});

test('what comes while a subscriber gets the list is neither lost nor sent twice', async () => {
  const { feed, outcome } = waiting(Promise.resolve(110));
  for (const version of [98, 100, 103]) apply(feed, version);
  expect(await outcome).toMatchObject([{ version: 103 }]);
});

test('where no event reports the version it is waited for no longer than two seconds', async () => {
  const { outcome, elapsedMs } = waiting(Promise.resolve(110));
  expect(await outcome).toBeUndefined();
  expect(elapsedMs()).toBeGreaterThan(1900);
});

test('a version that the store itself has not reached is not waited for', async () => {
  const { outcome, elapsedMs } = waiting(Promise.resolve(99));
  expect(await outcome).toBeUndefined();
  expect(elapsedMs()).toBeLessThan(1900);
});

test('where the store is unavailable nobody gets what was known before: at once when that is known or found, else after the wait', async () => {
  const source = { connected: () => false, newestVersion: () => never };
  const { signal } = new AbortController();
  await expect(catchUp(feedAt95(), 100, { source, signal })).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  const refused = waiting(away);
  expect(await refused.outcome).toBe('STORE_UNAVAILABLE');
  expect(refused.elapsedMs()).toBeLessThan(1900);
  const silent = waiting(never);
  expect(await silent.outcome).toBe('STORE_UNAVAILABLE');
  expect(silent.elapsedMs()).toBeGreaterThan(1900);
});

test('a store that stops while it is waited for is unavailable', async () => {
  const { outcome, disconnect } = waiting(Promise.resolve(110));
  disconnect();
  expect(await outcome).toBe('STORE_UNAVAILABLE');
});

test('who leaves does not wait any more', async () => {
  const { outcome, leave, elapsedMs } = waiting(never);
  leave();
  await outcome;
  expect(elapsedMs()).toBeLessThan(1900);
});
