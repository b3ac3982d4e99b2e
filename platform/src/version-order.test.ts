import { expect, test } from 'vitest';
import { isPreRelease, isUpdate, latestVersion } from './version-order.ts';

test.each([
  { announced: [], latest: undefined },
  { announced: ['1.0.0'], latest: '1.0.0' },
  { announced: ['1.9.0', '1.10.0', '1.2.0'], latest: '1.10.0' },
  { announced: ['v1.2.0', '1.3.0'], latest: '1.3.0' },
  { announced: ['2.0.0-rc.1', '1.9.9'], latest: '2.0.0-rc.1' },
  { announced: ['2.0.0-rc.1', '2.0.0'], latest: '2.0.0' },
  { announced: ['1.0.0+build2', '1.0.0+build1'], latest: '1.0.0+build2' },
  { announced: ['v1.0.0', '1.0.0'], latest: 'v1.0.0' },
  { announced: ['build-7', '9.9.9'], latest: 'build-7' },
  { announced: ['1.0.0', 'build-7', '9.9.9'], latest: '9.9.9' },
  { announced: ['1.9.0', 'build-7', '1.10.0', '..', '1.2.0'], latest: '1.10.0' },
  { announced: ['build-8', 'build-9', '1.0.0'], latest: 'build-8' },
  { announced: ['2026.11', '2026.10.1'], latest: '2026.11' },
  { announced: ['1.9', '1.10', 'v1.2.0'], latest: '1.10' },
])('of $announced, the last announced first, $latest is the latest', ({ announced, latest }) => {
  expect(latestVersion(announced)).toBe(latest);
});

test.each([
  { current: '1.0.0', latest: '1.0.1', update: true },
  { current: '1.0.1', latest: '1.0.0', update: false },
  { current: '1.0.0', latest: 'v1.0.0', update: false },
  { current: '1.0.0', latest: '1.0.0', update: false },
  { current: '2.0.0', latest: '2.0.0-rc.1', update: false },
  { current: '1.10', latest: '1.9', update: false },
  { current: '1.9', latest: '1.10', update: true },
  { current: '1.9', latest: '1.9.0', update: false },
  { current: '1.9.9', latest: 'v2', update: true },
  { current: '10', latest: '9', update: false },
  { current: '1.2.3.9', latest: '1.2.3.10', update: true },
  { current: '1.2.3.10', latest: '1.2.3.9', update: false },
  { current: '1.10', latest: '1.10-rc.1', update: false },
  { current: '1.10-rc.1', latest: '1.10', update: true },
  { current: '12ab34f', latest: '11ab34f', update: true },
  { current: 'abc', latest: 'def', update: true },
  { current: 'abc', latest: 'abc', update: false },
  { current: '', latest: '1.0.0', update: true },
  { current: 'abc', latest: '1.0.0', update: true },
  { current: '1.0.0', latest: 'abc', update: true },
])('from $current to $latest is an update: $update', ({ current, latest, update }) => {
  expect(isUpdate(current, latest)).toBe(update);
});

test.each([
  ['2.0.0-rc.1', true],
  ['v1.2-beta', true],
  ['2.0.0', false],
  ['2.0.0+build.7', false],
  ['main-7', false],
])('%s is a pre-release: %s', (version, is) => {
  expect(isPreRelease(version)).toBe(is);
});
