import { annotations } from '@rollcall/crds/kinds.ts';
import type { Artifact } from '@rollcall/crds/types.gen.ts';
import type { Container, Deployment } from '@rollcall/platform/kube/builtin-kinds.ts';
import { expect, test } from 'vitest';
import type { ArtifactSettings } from '../job/snapshot.ts';
import { buildDeployment, buildJob } from '../testing/builders.ts';
import { targetTemplate } from './artifact.ts';

const settings: ArtifactSettings = { fetcherImage: 'rollcall:1', maxBytes: 1000, allowPrivateAddresses: false };
const digest = `sha256:${'ab'.repeat(32)}`;

function deploymentWith(containers: readonly Container[], notes: Readonly<Record<string, string>> = {}): Deployment {
  return buildDeployment({
    metadata: { annotations: notes },
    spec: { template: { metadata: { labels: { app: 'shop' } }, spec: { containers, serviceAccountName: 'shop' } } },
  });
}

const made = (artifact: Artifact, deployment: Deployment, other: Partial<ArtifactSettings> = {}) =>
  targetTemplate(buildJob({ spec: { artifact } }), deployment, { ...settings, ...other });
const image = (url: string, checksum?: string): Artifact => ({
  type: 'image',
  url,
  ...(checksum === undefined ? {} : { checksum }),
});
const binary: Artifact = { type: 'binary', url: 'https://example.com/shop?a=$(HOME)', checksum: digest };
const two = [
  { name: 'proxy', image: 'proxy:1' },
  { name: 'shop', image: 'shop:1' },
];
const path = { [annotations.binaryPath]: '/app/bin/shop' };

test.for<[string, Deployment, string]>([
  ['the one named like the service', deploymentWith(two), 'shop'],
  ['the annotated one', deploymentWith(two, { [annotations.container]: 'proxy' }), 'proxy'],
  ['else the only one', deploymentWith([{ name: 'a', image: 'a:1' }]), 'a'],
])('the image goes into one container: %s', ([, deployment, name]) => {
  const { template } = made(image('shop:2'), deployment);
  const changed = template?.spec.containers.filter((container) => container.image === 'shop:2');
  expect(changed?.map((container) => container.name)).toEqual([name]);
  expect(template?.spec['serviceAccountName']).toBe('shop');
});

test.for<[string, Artifact, string]>([
  ['a tag', image('registry:5000/shop:2'), 'registry:5000/shop:2'],
  ['a tag with a checksum', image('shop:2', digest.toUpperCase().replace('SHA', 'sha')), `shop:2@${digest}`],
  ['a digest with the same checksum', image(`shop@${digest}`, digest), `shop@${digest}`],
])('%s', ([, artifact, expected]) => {
  expect(made(artifact, deploymentWith([{ name: 'shop' }])).template?.spec.containers[0]?.image).toBe(expected);
});

test.for<[string, Artifact, Deployment, Partial<ArtifactSettings>, RegExp]>([
  ['another digest', image(`shop@${digest}`, `sha256:${'cd'.repeat(32)}`), deploymentWith(two), {}, /not the checksum/],
  ['a sha512 of an image', image('shop:2', `sha512:${'a'.repeat(128)}`), deploymentWith(two), {}, /must be sha256/],
  ['no such container', image('shop:2'), deploymentWith(two, { [annotations.container]: 'x' }), {}, /no container x/],
  ['a binary without a path', binary, deploymentWith(two), {}, /no annotation/],
  [
    'a binary with a path that is none',
    binary,
    deploymentWith(two, { [annotations.binaryPath]: 'bin/shop' }),
    {},
    /no absolute path/,
  ],
  [
    'a binary in a directory',
    binary,
    deploymentWith(two, { [annotations.binaryPath]: '/app/' }),
    {},
    /no absolute path/,
  ],
  ['a binary above', binary, deploymentWith(two, { [annotations.binaryPath]: '/app/../shop' }), {}, /no absolute path/],
  ['no fetcher', binary, deploymentWith(two, path), { fetcherImage: undefined }, /no image to fetch/],
])('is refused: %s', ([, artifact, deployment, other, message]) => {
  const target = made(artifact, deployment, other);
  expect(target.template).toBeUndefined();
  expect('fault' in target && target.fault).toMatch(message);
});

test('a binary is fetched by an init container and mounted as one file', () => {
  const mounts = [{ name: 'data', mountPath: '/data' }];
  const deployment = deploymentWith([{ name: 'shop', image: 'runtime:1', volumeMounts: mounts }], {
    ...path,
    [annotations.artifactSecret]: 'token',
  });
  const { spec } = made(binary, deployment, { allowPrivateAddresses: true }).template ?? {};
  expect(spec?.initContainers).toHaveLength(1);
  expect(spec?.initContainers?.[0]).toMatchObject({
    name: 'rollcall-fetch',
    image: 'rollcall:1',
    args: [
      'fetch',
      '--url=https://example.com/shop?a=$$(HOME)',
      `--checksum=${digest}`,
      '--output=/artifact/shop',
      '--max-bytes=1000',
      '--allow-private',
      '--credentials-dir=/artifact-secret',
    ],
  });
  expect(spec?.containers[0]).toEqual({
    name: 'shop',
    image: 'runtime:1',
    volumeMounts: [
      ...mounts,
      { name: 'rollcall-artifact', mountPath: '/app/bin/shop', subPath: 'shop', readOnly: true },
    ],
  });
  expect(spec?.volumes).toEqual([
    { name: 'rollcall-artifact', emptyDir: {} },
    { name: 'rollcall-artifact-secret', secret: { secretName: 'token' } },
  ]);
});

test('another binary replaces the one before, an image all of it', () => {
  const first = deploymentWith([{ name: 'shop', image: 'runtime:1' }], path);
  const withFirst = {
    ...first,
    spec: { ...first.spec, template: made(binary, first).template ?? first.spec.template },
  };
  const again = made({ ...binary, url: 'https://example.com/two' }, withFirst).template;
  expect(again?.spec.initContainers).toHaveLength(1);
  expect(again?.spec.volumes).toHaveLength(1);
  expect(again?.spec.containers[0]?.volumeMounts).toHaveLength(1);
  expect(made(image('shop:2'), withFirst).template?.spec).toEqual({
    containers: [{ name: 'shop', image: 'shop:2' }],
    serviceAccountName: 'shop',
  });
});

const crowd = [
  { name: 'proxy', image: 'registry:5000/mesh/proxy:2' },
  { name: 'main', image: 'registry:5000/team/shop:1' },
];
const sidecar = { name: 'main', image: 'registry:5000/team/shop:1', restartPolicy: 'Always' };

function changedBy(url: string, deployment: Deployment): unknown {
  const target = made({ type: 'image', url }, deployment);
  if (target.template === undefined) return target.fault;
  const { containers, initContainers = [] } = target.template.spec;
  return [...containers, ...initContainers].filter(({ image }) => image === url).map(({ name }) => name);
}

test('of several containers the one whose image has the same repository is the service', () => {
  expect(changedBy('registry:5000/team/shop:2', deploymentWith(crowd))).toEqual(['main']);
  const [proxy, main] = crowd;
  const digest = { ...main, name: 'main', image: `registry:5000/team/shop@sha256:${'a'.repeat(64)}` };
  expect(changedBy('registry:5000/team/shop:2', deploymentWith([{ name: 'proxy', ...proxy }, digest]))).toEqual([
    'main',
  ]);
});

test('of several containers none is guessed', () => {
  const fault = expect.stringMatching(/containers proxy, main: .*annotation rollcall\.dev\/container/);
  expect(changedBy('registry:5000/other/shop:2', deploymentWith(crowd))).toEqual(fault);
  const alike = crowd.map(({ name }) => ({ name, image: 'team/shop:1' }));
  expect(changedBy('team/shop:2', deploymentWith(alike))).toEqual(fault);
});

function withInit(initContainers: readonly Container[]): Deployment {
  const deployment = deploymentWith([{ name: 'job', image: 'job:1' }], { 'rollcall.dev/container': 'main' });
  const { template } = deployment.spec;
  const spec = { ...template.spec, initContainers };
  return { ...deployment, spec: { ...deployment.spec, template: { ...template, spec } } };
}

test('a native sidecar can be the service, an init container that ends cannot', () => {
  expect(changedBy('registry:5000/team/shop:2', withInit([sidecar]))).toEqual(['main']);
  const { restartPolicy: _, ...ends } = sidecar;
  expect(changedBy('registry:5000/team/shop:2', withInit([ends]))).toEqual('Deployment shop has no container main');
});
