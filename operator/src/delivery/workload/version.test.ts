import { expect, test } from 'vitest';
import { buildDeployment, buildTemplate } from '../testing/builders.ts';
import { FETCHER_CONTAINER } from './artifact.ts';
import { runningArtifact, runningVersion } from './version.ts';

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

const pinned = `shop:1.2.0@sha256:${'a'.repeat(64)}`;
const { spec } = buildTemplate('base:1');
const fetched = { template: { spec: { ...spec, initContainers: [{ name: FETCHER_CONTAINER, image: 'rollcall:1' }] } } };

test.for<[string, Parameters<typeof buildDeployment>[0], string | undefined]>([
  ['an image', { image: 'registry:5000/a/shop:1.2.0' }, 'registry:5000/a/shop:1.2.0'],
  ['an image by its digest', { image: pinned }, pinned],
  ['no image', { image: '' }, undefined],
  ['more than a status holds', { image: `shop:${'x'.repeat(2044)}` }, undefined],
  ['a binary', { spec: fetched }, undefined],
])('what is run: %s', ([, wish, url]) => {
  const artifact = url === undefined ? undefined : { type: 'image', url };
  expect(runningArtifact(buildDeployment(wish), 'shop')).toEqual(artifact);
});
