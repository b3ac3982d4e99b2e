import { expect, test } from 'vitest';
import { buildDeployment } from './model/build.ts';
import { runningVersion } from './version.ts';

test.for<[string, Parameters<typeof buildDeployment>[0], string | undefined]>([
  ['the tag', { image: 'registry:5000/a/shop:1.2.0' }, '1.2.0'],
  ['the tag before a digest', { image: `shop:1.2.0@sha256:${'a'.repeat(64)}` }, '1.2.0'],
  ['no tag', { image: 'registry:5000/shop' }, undefined],
  ['a digest alone', { image: `shop@sha256:${'a'.repeat(64)}` }, undefined],
  ['the label before the tag', { metadata: { labels: { 'app.kubernetes.io/version': '2' } } }, '2'],
  [
    'the annotation before the label',
    { metadata: { labels: { 'app.kubernetes.io/version': '2' }, annotations: { 'rollcall.dev/version': '3' } } },
    '3',
  ],
])('the version that runs: %s', ([, wish, expected]) => {
  expect(runningVersion(buildDeployment(wish), 'shop')).toBe(expected);
});
