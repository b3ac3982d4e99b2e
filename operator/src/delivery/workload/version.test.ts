import { expect, test } from 'vitest';
import { buildDeployment, buildJob, buildTemplate } from '../testing/builders.ts';
import { FETCHER_CONTAINER } from './artifact.ts';
import { runningArtifact, runningVersion, versionAnnotations } from './version.ts';

const labelled = (version: string) => ({ 'app.kubernetes.io/version': version });

const job = buildJob().spec;

test.for<[string, Parameters<typeof buildDeployment>[0], string | undefined]>([
  ['the tag', { image: 'registry:5000/a/shop:1.2.0' }, '1.2.0'],
  ['the tag before a digest', { image: `shop:1.2.0@sha256:${'a'.repeat(64)}` }, '1.2.0'],
  ['no tag', { image: 'registry:5000/shop' }, undefined],
  ['a digest alone', { image: `shop@sha256:${'a'.repeat(64)}` }, undefined],
  ['the label before a tag', { image: 'shop:stable', metadata: { labels: labelled('2') } }, '2'],
  [
    'the label before the variant of a release',
    { image: 'shop:2.0.0-alpine', metadata: { labels: labelled('2') } },
    '2',
  ],
  [
    'a release before a label that was forgotten',
    { image: 'shop:v2.1.0', metadata: { labels: labelled('2') } },
    'v2.1.0',
  ],
  ['the label that says the same as the tag', { image: 'shop:v2.0.0', metadata: { labels: labelled('2') } }, '2'],
  [
    'the annotation before the label',
    { metadata: { labels: labelled('2'), annotations: { 'rollcall.dev/version': '3' } } },
    '3',
  ],
])('the version that runs: %s', ([, wish, expected]) => {
  expect(runningVersion(buildDeployment(wish), job)).toBe(expected);
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
  expect(runningArtifact(buildDeployment(wish), job)).toEqual(artifact);
});

const digest = (letter: string) => `shop@sha256:${letter.repeat(64)}`;
const binary = (checksum: string) => ({
  template: {
    spec: {
      ...spec,
      initContainers: [{ name: FETCHER_CONTAINER, image: 'rollcall:1', args: ['fetch', `--checksum=${checksum}`] }],
    },
  },
});

/** What was delivered as version 3, and what runs by now. */
test.for<[string, Parameters<typeof buildDeployment>[0], Parameters<typeof buildDeployment>[0], string | undefined]>([
  ['the same', { image: 'shop:3' }, { image: 'shop:3' }, '3'],
  ['the same by digest', { image: digest('a') }, { image: digest('a') }, '3'],
  ['another tag', { image: 'shop:3' }, { image: 'shop:4.0.0' }, '4.0.0'],
  ['another digest', { image: digest('a') }, { image: digest('b') }, undefined],
  ['a binary', { spec: binary('sha256:1') }, { spec: binary('sha256:1') }, '3'],
  [
    'a binary in another base image',
    { spec: binary('sha256:1') },
    {
      spec: {
        template: { spec: { ...binary('sha256:1').template.spec, containers: [{ name: 'shop', image: 'base:2' }] } },
      },
    },
    '3',
  ],
  ['another binary', { spec: binary('sha256:1') }, { spec: binary('sha256:2') }, undefined],
  ['an image instead of a binary', { spec: binary('sha256:1') }, { image: 'shop:4' }, '4'],
  [
    'a label that nobody has touched since',
    { image: 'shop:3', metadata: { labels: labelled('1') } },
    { image: digest('b'), metadata: { labels: labelled('1') } },
    undefined,
  ],
  [
    'a label that came with another image',
    { image: 'shop:3', metadata: { labels: labelled('1') } },
    { image: digest('b'), metadata: { labels: labelled('4') } },
    '4',
  ],
])('a version counts for what it was written for: %s', ([, delivered, running, expected]) => {
  const before = buildDeployment(delivered);
  const notes = versionAnnotations(before, before.spec.template, {
    version: '3',
    serviceName: 'shop',
    artifact: job.artifact,
  });
  const after = buildDeployment(running);
  const { metadata } = after;
  expect(
    runningVersion({ ...after, metadata: { ...metadata, annotations: { ...metadata.annotations, ...notes } } }, job),
  ).toBe(expected);
});

test('a version that somebody has written since counts, and so does that of another container', () => {
  const { spec: pod, metadata } = buildDeployment();
  const containers = [
    { name: 'shop', image: 'shop:1' },
    { name: 'worker', image: 'worker:5' },
  ];
  const before = { ...buildDeployment(), spec: { ...pod, template: { spec: { containers } } } };
  const notes = versionAnnotations(before, before.spec.template, {
    version: '3',
    serviceName: 'shop',
    artifact: job.artifact,
  });
  const withNotes = (more: Record<string, string>) => ({
    ...before,
    metadata: { ...metadata, annotations: { ...notes, ...more } },
  });
  expect(runningVersion(withNotes({}), job)).toBe('3');
  expect(runningVersion(withNotes({ 'rollcall.dev/version': '7' }), job)).toBe('7');
  expect(runningVersion(withNotes({ 'rollcall.dev/container': 'worker' }), job)).toBe('5');
});
