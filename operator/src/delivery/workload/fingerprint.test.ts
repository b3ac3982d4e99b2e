import { annotations } from '@rollcall/crds/kinds.ts';
import type { PodTemplate } from '@rollcall/platform/kube/builtin-kinds.ts';
import { expect, test } from 'vitest';
import { buildDeployment, buildJob, OLD } from '../testing/builders.ts';
import { targetTemplate } from './artifact.ts';
import { isAsDesired, isSameJson, templateFingerprint } from './fingerprint.ts';

const desired: PodTemplate = {
  metadata: { labels: { app: 'shop' } },
  spec: { containers: [{ name: 'shop', image: 'shop:1', args: ['a', 'b'], volumeMounts: [] }] },
};

test('the order of fields and null fields do not matter to a fingerprint, the order of lists does', () => {
  const shop = { name: 'shop', image: 'shop:1', args: ['a', 'b'] };
  const a = templateFingerprint({ metadata: { labels: { a: '1', b: '2' } }, spec: { containers: [shop] } });
  const metadata = { labels: { b: '2', a: '1' }, creationTimestamp: null as unknown as string };
  expect(templateFingerprint({ spec: { containers: [shop] }, metadata })).toBe(a);
  const swapped = { ...shop, args: ['b', 'a'] };
  expect(templateFingerprint({ metadata, spec: { containers: [swapped] } })).not.toBe(a);
});

test('the same JSON', () => {
  expect(isSameJson(undefined, undefined)).toBe(true);
  expect(isSameJson({ a: undefined }, {})).toBe(true);
  expect(isSameJson({ a: 1 }, { a: 2 })).toBe(false);
});

const defaulted = {
  ...desired,
  spec: {
    restartPolicy: 'Always',
    containers: [{ name: 'shop', image: 'shop:1', args: ['a', 'b'], terminationMessagePath: '/dev/termination-log' }],
  },
};

test.for<[string, PodTemplate, boolean]>([
  ['itself', desired, true],
  ['with the defaults of the API server', defaulted, true],
  [
    'with another image',
    { ...defaulted, spec: { containers: [{ name: 'shop', image: 'shop:2', args: ['a', 'b'] }] } },
    false,
  ],
  [
    'with an argument more',
    { ...desired, spec: { containers: [{ name: 'shop', image: 'shop:1', args: ['a', 'b', 'c'] }] } },
    false,
  ],
  ['with a container more', { ...desired, spec: { containers: [...desired.spec.containers, { name: 'x' }] } }, false],
  [
    'with an annotation more',
    { ...defaulted, metadata: { labels: { app: 'shop' }, annotations: { restarted: 'x' } } },
    false,
  ],
  ['with an init container', { ...defaulted, spec: { ...defaulted.spec, initContainers: [{ name: 'x' }] } }, false],
  ['with a volume', { ...defaulted, spec: { ...defaulted.spec, volumes: [{ name: 'x' }] } }, false],
  ['with empty lists', { ...defaulted, spec: { ...defaulted.spec, initContainers: [], volumes: [] } }, true],
  ['with another label', { ...defaulted, metadata: { labels: { app: 'other' } } }, false],
  [
    'with a mount',
    {
      ...desired,
      spec: {
        containers: [{ ...defaulted.spec.containers[0], name: 'shop', volumeMounts: [{ name: 'x', mountPath: '/x' }] }],
      },
    },
    false,
  ],
])('a template is as desired: %s', ([, observed, expected]) => {
  expect(isAsDesired(desired, observed)).toBe(expected);
});

test('a base image without the binary that was mounted into it is another version', () => {
  const image = buildDeployment({ metadata: { annotations: { [annotations.binaryPath]: '/app/shop' } } });
  const settings = { fetcherImage: 'fetcher:1', maxBytes: 1, allowPrivateAddresses: false };
  const checksum = `sha256:${'a'.repeat(64)}`;
  const binary = { type: 'binary', url: 'https://example.com/shop', checksum } as const;
  const { template = image.spec.template } = targetTemplate(buildJob({ spec: { artifact: binary } }), image, settings);
  const withBinary = { ...image, spec: { ...image.spec, template } };
  const back = targetTemplate(buildJob({ spec: { artifact: { type: 'image', url: OLD } } }), withBinary, settings);
  expect(back.template).toEqual(image.spec.template);
  expect(isAsDesired(image.spec.template, template)).toBe(false);
});
