import { describe, expect, test } from 'vitest';
import { subgraph } from '../testing/subgraphs.ts';
import { afterNews, lookInMs, type News, type Subgraph, statusOf } from './subgraphs.ts';

const NOW = new Date('2026-11-27T10:00:00Z');
const URLS = ['http://users/api/graphql', 'http://users/graphql'];
const registered: News = { kind: 'registered', service: 'users', candidates: URLS, version: '1' };
const failure = { code: 'INTROSPECTION_FAILED', message: 'no answer' } as const;
const known = subgraph('users', 'old', { source: 'registered', candidates: URLS, version: '1', goodSdl: 'old' });
const told = subgraph('users', 'old', { goodSdl: 'old' });

/** What becomes of one service; undefined: it is not known any more. */
function after(before: Subgraph | undefined, ...news: readonly News[]): Subgraph | undefined {
  return afterNews(new Map(before === undefined ? [] : [['users', before]]), news, NOW).get('users');
}

describe('a registration', () => {
  test('makes a service known, without a schema yet', () => {
    const made = after(undefined, registered);
    expect(made).toMatchObject({ source: 'registered', url: URLS[0], version: '1', sdl: null, goodSdl: null });
    expect(made && statusOf(made)).toBe('unreachable');
  });

  test('that says nothing new changes nothing', () => {
    expect(after(known, registered)).toBe(known);
  });

  test('of another place keeps the schema until that is read there', () => {
    const candidates = ['http://elsewhere/graphql'];
    expect(after(known, { ...registered, candidates })).toMatchObject({
      url: candidates[0],
      candidates,
      goodSdl: 'old',
    });
  });

  test('brings back one that had gone', () => {
    expect(after({ ...known, goneAt: NOW }, registered)).toMatchObject({ goneAt: null, goodSdl: 'old' });
  });

  test.each([told, { ...known, isLeftOut: true }])('changes nothing of what people have decided', (before) => {
    expect(after(before, registered)).toBe(before);
  });
});

describe('a schema', () => {
  const read: News = { kind: 'read', service: 'users', url: URLS[1] ?? '', sdl: 'new' };

  test('that is another waits to be composed', () => {
    const before = { ...known, errors: [{ code: 'X', message: 'x' }], failure };
    expect(after(before, read)).toMatchObject({
      sdl: 'new',
      goodSdl: 'old',
      url: URLS[1],
      errors: [],
      failure: null,
      updatedAt: NOW,
    });
  });

  test('that is the same says only that the service answers', () => {
    expect(after({ ...known, url: URLS[1] ?? '' }, { ...read, sdl: 'old' })).toMatchObject({
      updatedAt: known.updatedAt,
    });
  });

  test('of a place that the service has left counts no more', () => {
    expect(after(known, { ...read, url: 'http://elsewhere/graphql' })).toBe(known);
    expect(after(undefined, read)).toBeUndefined();
  });

  test('that cannot be read leaves the one that was', () => {
    const unread = after(known, { kind: 'unread', service: 'users', failure });
    expect(unread).toEqual({ ...known, failure });
    expect(unread && statusOf(unread)).toBe('unreachable');
    expect(after(undefined, { kind: 'unread', service: 'users', failure })).toBeUndefined();
  });

  test('that somebody tells of counts whatever is registered, and is tried anew', () => {
    const before = { ...known, errors: [{ code: 'X', message: 'x' }], isLeftOut: true };
    const url = 'http://users:1/graphql';
    expect(after(before, { kind: 'told', service: 'users', url, sdl: 'old' })).toMatchObject({
      source: 'introspected',
      url,
      candidates: [url],
      errors: [],
      isLeftOut: false,
    });
  });
});

describe('a service that is not registered any more', () => {
  test('stays until its grace is over', () => {
    const gone = after(known, { kind: 'gone', service: 'users' });
    expect(gone).toEqual({ ...known, goneAt: NOW });
    expect(gone && statusOf(gone)).toBe('stale');
    expect(after(gone, { kind: 'gone', service: 'users' })).toBe(gone);
    expect(after(gone, { kind: 'lapsed', service: 'users' })).toBeUndefined();
  });

  test('stays where it came back meanwhile, or where somebody told of it', () => {
    expect(after(known, { kind: 'lapsed', service: 'users' })).toBe(known);
    expect(after(told, { kind: 'gone', service: 'users' })).toBe(told);
  });

  test.each([{ sdl: null }, { isLeftOut: true }])('is forgotten at once where it is in no graph: %j', (more) => {
    expect(after({ ...known, ...more }, { kind: 'gone', service: 'users' })).toBeUndefined();
  });
});

test('what somebody removes is forgotten, and left out while it is registered', () => {
  expect(after(told, { kind: 'removed', service: 'users' })).toBeUndefined();
  expect(after({ ...known, goneAt: NOW }, { kind: 'removed', service: 'users' })).toBeUndefined();
  expect(after(known, { kind: 'removed', service: 'users' })).toMatchObject({ isLeftOut: true, goodSdl: null });
});

test('a held schema is one that has errors', () => {
  expect(statusOf({ ...told, errors: [{ code: 'X', message: 'x' }] })).toBe('held');
  expect(statusOf(told)).toBe('composed');
});

describe('a schema is read next', () => {
  const times = { pollMs: 60, graceMs: 300 };
  const moved = { ...known, candidates: ['http://elsewhere/graphql'] };

  test.each([
    { when: 'at once where the service is new', before: undefined, now: known, ms: 0 },
    { when: 'at once where it has moved', before: known, now: moved, ms: 0 },
    { when: 'at once where it has another version', before: known, now: { ...known, version: '2' }, ms: 0 },
    { when: 'at once where it came back', before: { ...known, goneAt: NOW }, now: known, ms: 0 },
    { when: 'as it was to be otherwise', before: known, now: { ...known, sdl: 'new' }, ms: undefined },
    { when: 'after the poll where somebody told of it', before: undefined, now: told, ms: 60 },
    { when: 'as it was to be where it is told of again', before: told, now: { ...told, sdl: 'new' }, ms: undefined },
  ])('$when', ({ before, now, ms }) => {
    expect(lookInMs(before, now, times)).toBe(ms);
  });

  test('a service that is gone is looked at when its grace is over', () => {
    expect(lookInMs(known, { ...known, goneAt: NOW }, times)).toBe(300);
    expect(lookInMs({ ...known, goneAt: NOW }, { ...known, goneAt: NOW, failure }, times)).toBeUndefined();
  });
});
