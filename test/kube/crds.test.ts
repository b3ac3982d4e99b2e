import {
  apiClientKind,
  deliveryJobKind,
  deliveryPolicyKind,
  objectNameFor,
  serviceRegistrationKind,
  webhookConfigKind,
} from '@rollcall/crds/kinds.ts';
import type { ResourceKind } from '@rollcall/crds/resource-kind.ts';
import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { connectByFile, type KubeConnection, type Query } from '@rollcall/platform/kube/connection.ts';
import { collectionPath, type KubeObject } from '@rollcall/platform/kube/resource-client.ts';
import { httpUrlFault, serviceNameFault, serviceUrlFault } from '@rollcall/platform/service-address.ts';
import { versionFault } from '@rollcall/registry/common/validation.ts';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, test } from 'vitest';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { accessExamples, accessUpdates } from './access-examples.ts';
import type { ExampleObject } from './crd-example.ts';
import { deliveryExamples, deliveryUpdates } from './delivery-examples.ts';
import { registrationExamples, registrationUpdates } from './registration-examples.ts';

const examples = [...registrationExamples, ...deliveryExamples, ...accessExamples];
const updates = [...registrationUpdates, ...deliveryUpdates, ...accessUpdates];

let namespace: TestNamespace;
let kube: KubeConnection;

beforeAll(async () => {
  namespace = await createNamespace('crds');
  const options = { clock: systemClock, requestTimeoutMs: 30_000, maxSockets: 4 };
  kube = await connectByFile(namespace.kubeconfigPath, options);
});

afterAll(async () => {
  await kube.close();
});

/** Sends an object as kubectl does, refusing unknown fields. */
function send<T extends KubeObject>(kind: ResourceKind<T>, object: ExampleObject, query: Query = {}): Promise<T> {
  return kube.request<T>({
    method: 'POST',
    path: collectionPath(kind, namespace.name),
    query: { fieldValidation: 'Strict', ...query },
    body: { apiVersion: kind.apiVersion, kind: kind.kind, metadata: { name: object.name }, spec: object.spec },
  });
}

/** Stores an object until the end of the test. */
async function store<T extends KubeObject>(kind: ResourceKind<T>, object: ExampleObject): Promise<T> {
  const stored = await send(kind, object);
  onTestFinished(async () => {
    await kube.request({ method: 'DELETE', path: pathOf(kind, stored.metadata.name) });
  });
  return stored;
}

function pathOf(kind: ResourceKind<KubeObject>, name: string): string {
  return `${collectionPath(kind, namespace.name)}/${name}`;
}

function change(path: string, patch: object): Promise<unknown> {
  return kube.request({ method: 'PATCH', path, body: patch, contentType: 'application/merge-patch+json' });
}

describe('the API server accepts', () => {
  const accepted = examples.filter(({ refusal }) => refusal === undefined);
  test.each(accepted)('$kind.kind: $sentence', async ({ kind, object }) => {
    const stored = await store(kind, object);
    expect(stored).toMatchObject({ kind: kind.kind, metadata: { name: object.name }, spec: object.spec });
  });

  const updatable = updates.filter(({ refusal }) => refusal === undefined);
  test.each(updatable)('in a stored $kind.kind: $sentence', async ({ kind, before, patch, subresource }) => {
    const stored = await store(kind, before);
    const path = pathOf(kind, stored.metadata.name);
    const changed = await change(subresource === undefined ? path : `${path}/${subresource}`, patch);
    expect(changed).toMatchObject(withoutNulls(patch));
    expect(await kube.request({ method: 'GET', path })).toEqual(changed);
  });

  it('every name that the registry and the operator accept', async () => {
    const names = fc.oneof(fc.string({ unit: 'binary', maxLength: 255 }), fc.string({ unit: 'grapheme-ascii' }));
    const legal = names.filter((name) => serviceNameFault(name) === undefined);
    for (const serviceName of fc.sample(legal, 200)) {
      const object = { name: objectNameFor(serviceName), spec: { serviceName, url: 'http://shop' } };
      const stored = await send(serviceRegistrationKind, object, { dryRun: 'All' });
      expect(stored.spec.serviceName).toBe(serviceName);
    }
  });
});

/** URLs that are right, or nearly so. */
const nearUrls = (() => {
  const odd = fc.constantFrom('@', ':', '%', '%41', '\\', '[', ']', '[::1]', '<', '^', '|', '/', '?', '#', '//', '0');
  const part = fc.oneof(odd, fc.string({ unit: 'binary', maxLength: 8 }), fc.string({ unit: 'grapheme-ascii' }));
  const group = fc.constantFrom('0', '1', 'ffff', '12345', '', ':', '1.2.3.4', '256.1.1.1', 'g');
  const ipv6 = fc.array(group, { minLength: 1, maxLength: 9 }).map((groups) => `[${groups.join(':')}]`);
  const label = fc.constantFrom(
    'shop',
    'a_b',
    '-a-',
    '1',
    '0x1',
    '0',
    '08',
    '256',
    '1a',
    '0x',
    'größe',
    '',
    'a b',
    '日本',
  );
  const name = fc.array(label, { minLength: 1, maxLength: 5 }).map((labels) => labels.join('.'));
  const digits = fc.constantFrom('', '0', '1', '080', '65535', '65536', '99999', '100000');
  const port = fc.oneof(digits, fc.integer({ min: 0, max: 99_999 })).map((number) => `:${number}`);
  const scheme = fc.constantFrom('http://', 'https://', 'https://', 'HTTPS://', 'http:///', 'http:');
  const host = fc.oneof(
    name,
    ipv6,
    fc.ipV4(),
    fc.ipV6().map((address) => `[${address}]`),
    part,
    fc.webAuthority(),
  );
  const end = fc.oneof(fc.constantFrom('', '/', '/base', '?a', '#b', '/@'), part);
  return fc.tuple(scheme, host, fc.oneof(fc.constant(''), port, part), end).map((parts) => parts.join(''));
})();

function httpsUrlFault(url: string): string | undefined {
  return httpUrlFault(url) ?? (/^https:/i.test(url) ? undefined : 'must be https');
}

function deploy(more: object): object {
  return { serviceName: 'shop', operation: 'Deploy', version: '1', ...more };
}

describe('the API server accepts what the registry accepts, and nothing else:', () => {
  const checksum = `sha256:${'a'.repeat(64)}`;
  const version = fc.oneof(
    fc.constantFrom('.', '..', '...', '1/2', '/', 'a b', '1.0.0', '*', '\\', ':'),
    fc.string({ unit: 'binary', maxLength: 4 }),
    fc.string({ unit: 'binary', minLength: 126, maxLength: 130 }),
  );
  test.each([
    {
      what: 'URLs of services',
      kind: serviceRegistrationKind,
      texts: nearUrls,
      faultOf: serviceUrlFault,
      specOf: (text: string) => ({ serviceName: 'shop', url: text }),
    },
    {
      what: 'endpoints',
      kind: webhookConfigKind,
      texts: nearUrls,
      faultOf: httpUrlFault,
      specOf: (text: string) => ({ serviceName: 'shop', endpoints: { chat: text } }),
    },
    {
      what: 'URLs of binaries',
      kind: deliveryJobKind,
      texts: nearUrls,
      faultOf: httpsUrlFault,
      specOf: (text: string) => deploy({ artifact: { type: 'binary', url: text, checksum } }),
    },
    {
      what: 'versions',
      kind: deliveryJobKind,
      texts: version,
      faultOf: versionFault,
      specOf: (text: string) => deploy({ version: text, artifact: { url: 'shop:1' } }),
    },
  ])('$what', async ({ kind, texts, faultOf, specOf }) => {
    const legal = fc.sample(
      texts.filter((text) => faultOf(text) === undefined),
      150,
    );
    for (const text of [...legal, ...fc.sample(texts, 300)]) {
      const answer = await send<KubeObject>(kind, { name: 'shop', spec: specOf(text) }, { dryRun: 'All' }).then(
        () => 'accepted',
        (error: unknown) => String(error),
      );
      expect({ text, answer }).toEqual({
        text,
        answer: expect.stringMatching(faultOf(text) === undefined ? /^accepted$/ : / is invalid: /),
      });
    }
  });
});

describe('the API server refuses', () => {
  const refused = examples.filter(({ refusal }) => refusal !== undefined);
  test.each(refused)('$kind.kind: $sentence', async ({ kind, object, refusal }) => {
    await expect(store(kind, object)).rejects.toThrow(refusal);
  });

  const forbidden = updates.filter(({ refusal }) => refusal !== undefined);
  test.each(forbidden)('in a stored $kind.kind: $sentence', async ({ kind, before, patch, subresource, refusal }) => {
    const stored = await store(kind, before);
    const path = pathOf(kind, stored.metadata.name);
    const changing = change(subresource === undefined ? path : `${path}/${subresource}`, patch);
    await expect(changing).rejects.toThrow(refusal);
    expect(await kube.request({ method: 'GET', path })).toEqual(stored);
  });
});

/** What is left of an object when a merge patch has removed what it says. */
function withoutNulls(patch: object): object {
  return JSON.parse(JSON.stringify(patch, (_key, value: unknown) => value ?? undefined));
}

describe('defaults', () => {
  it('of a ServiceRegistration: no capabilities, no TTL, made by hand, no status yet', async () => {
    const stored = await store(serviceRegistrationKind, {
      name: 'shop',
      spec: { serviceName: 'shop', url: 'http://shop' },
    });
    expect(stored.spec).toEqual({
      serviceName: 'shop',
      url: 'http://shop',
      capabilities: [],
      source: 'Manifest',
    });
    expect(stored.status).toBeUndefined();
  });

  it('of a DeliveryJob: an image, not aborted, not promoted, Pending', async () => {
    const spec = { serviceName: 'shop', operation: 'Deploy', version: '2', artifact: { url: 'shop:2' } };
    const stored = await store(deliveryJobKind, { name: 'deploy-shop-2', spec });
    expect(stored.spec).toEqual({ ...spec, artifact: { type: 'image', url: 'shop:2' }, abort: false, promote: false });
    expect(stored.status).toEqual({ phase: 'Pending' });
    const selected = await namespace.kubectl(['get', 'dj', '--field-selector', 'status.phase=Pending', '-o', 'name']);
    expect(selected).toBe('deliveryjob.rollcall.dev/deploy-shop-2\n');
  });

  it('of a DeliveryPolicy: everything', async () => {
    const stored = await store(deliveryPolicyKind, {
      name: 'all',
      spec: { serviceName: '*', analysis: [{ name: 'health', http: { port: 80 } }] },
    });
    expect(stored.spec).toEqual({
      serviceName: '*',
      strategy: 'Rolling',
      rolling: { bakeSeconds: 5 },
      blueGreen: { bakeSeconds: 60, autoPromote: true },
      canary: {
        steps: [10, 25, 50].map((weight) => ({ weight, pauseSeconds: 60 })),
        trafficRouter: 'Replicas',
      },
      requireHeartbeat: false,
      analysis: [
        {
          name: 'health',
          initialDelaySeconds: 0,
          intervalSeconds: 10,
          count: 1,
          failureLimit: 0,
          http: { path: '/', port: 80, scheme: 'HTTP', timeoutSeconds: 5 },
        },
      ],
      onFailure: 'RollBack',
      drainSeconds: 30,
      supersede: false,
      autoDeploy: false,
      preReleases: false,
    });
  });

  it('of a WebhookConfig: no endpoints, the key "secret"', async () => {
    const stored = await store(webhookConfigKind, {
      name: 'shop',
      spec: { serviceName: 'shop', secretRef: { name: 's' } },
    });
    expect(stored.spec).toEqual({ serviceName: 'shop', endpoints: {}, secretRef: { name: 's', key: 'secret' } });
  });

  it('of an ApiClient: the lowest tier, no scopes, the key "secret"', async () => {
    const stored = await store(apiClientKind, { name: 'ci', spec: { clientId: 'ci', secretRef: { name: 's' } } });
    expect(stored.spec).toEqual({ clientId: 'ci', tier: 'Free', scopes: [], secretRef: { name: 's', key: 'secret' } });
  });
});

describe('server-side apply of a status', () => {
  it('keeps the fields of two managers apart and replaces details as a whole', async () => {
    const kind = serviceRegistrationKind;
    await store(kind, { name: 'shop', spec: { serviceName: 'shop', url: 'http://shop' } });
    const apply = (fieldManager: string, status: object) =>
      kube.request<ServiceRegistration>({
        method: 'PATCH',
        path: `${pathOf(kind, 'shop')}/status`,
        query: { fieldManager },
        body: { apiVersion: kind.apiVersion, kind: kind.kind, metadata: { name: 'shop' }, status },
        contentType: 'application/apply-patch+yaml',
      });
    const healthy = { status: 'healthy', reportedAt: '2026-11-20T12:00:00Z' };
    await apply('operator', { phase: 'Registered', phaseSince: '2026-11-20T12:00:00Z' });
    await apply('registry', { health: { ...healthy, details: { disk: { free: 1 }, pid: 42 } } });
    await apply('registry', { health: { ...healthy, details: { disk: { used: 2 } } } });
    const { status } = await apply('operator', { phase: 'Expired', phaseSince: '2026-11-20T12:01:00Z' });
    expect(status).toEqual({
      phase: 'Expired',
      phaseSince: '2026-11-20T12:01:00Z',
      health: { ...healthy, details: { disk: { used: 2 } } },
    });
  });
});

describe('kubectl', () => {
  const objects: readonly (ExampleObject & { readonly kind: ResourceKind<KubeObject> })[] = [
    { kind: apiClientKind, name: 'ci', spec: { clientId: 'ci', scopes: ['a', 'b'], secretRef: { name: 'ci' } } },
    {
      kind: deliveryJobKind,
      name: 'deploy-shop-2',
      spec: { serviceName: 'shop', operation: 'Deploy', version: '2', artifact: { url: 'shop:2' }, requestedBy: 'ci' },
    },
    { kind: deliveryPolicyKind, name: 'all', spec: { serviceName: '*' } },
    {
      kind: serviceRegistrationKind,
      name: 'shop',
      spec: {
        serviceName: 'shop',
        url: 'http://shop:8080',
        capabilities: ['rest', 'grpc'],
        ttlSeconds: 60,
        zone: 'eu-1',
        weight: 50,
      },
    },
    {
      kind: webhookConfigKind,
      name: 'shop',
      spec: { serviceName: 'shop', endpoints: { slack: 'http://hooks' }, secretRef: { name: 'shop' } },
    },
  ];

  beforeAll(async () => {
    for (const { kind, ...object } of objects) await send(kind, object);
    const minutesAgo = new Date(Date.now() - 5 * 60_000 - 1_000).toISOString();
    await change(`${pathOf(serviceRegistrationKind, 'shop')}/status`, {
      status: {
        phase: 'Registered',
        phaseSince: minutesAgo,
        currentVersion: '1.2.3',
        health: { status: 'healthy', reportedAt: minutesAgo },
        check: { status: 'Failing', since: minutesAgo, message: 'it answered 503' },
        conditions: [
          { type: 'Ready', status: 'True', reason: 'Static', message: 'm', lastTransitionTime: minutesAgo },
          { type: 'Healthy', status: 'False', reason: 'CheckFails', message: 'm', lastTransitionTime: minutesAgo },
          { type: 'Composed', status: 'True', reason: 'Composed', message: 'm', lastTransitionTime: minutesAgo },
        ],
      },
    });
  });

  afterAll(async () => {
    for (const { kind, name } of objects) await kube.request({ method: 'DELETE', path: pathOf(kind, name) });
  });

  test.each([
    {
      shortName: 'sreg',
      headings:
        'NAME|SERVICE|INSTANCE|URL|PHASE|HEALTH|CHECK|SINCE|VERSION|HEALTHY|COMPOSED|ZONE|WEIGHT|CAPABILITIES|SOURCE|TTL|AGE',
      cells:
        /^shop\|shop\|\|http:\/\/shop:8080\|Registered\|healthy\|Failing\|5m\d*s?\|1.2.3\|False\|True\|eu-1\|50\|\["rest","grpc"\]\|Manifest\|60\|\d+s$/,
    },
    {
      shortName: 'dj',
      headings:
        'NAME|PHASE|REASON|WEIGHT|ACTUAL|AGE|SERVICE|OPERATION|OLD VERSION|VERSION|STRATEGY|STEP|REQUESTED BY|MESSAGE',
      cells: /^deploy-shop-2\|Pending\|\|\|\|\d+s\|shop\|Deploy\|\|2\|\|\|ci\|$/,
    },
    {
      shortName: 'dp',
      headings: 'NAME|SERVICE|STRATEGY|ON FAILURE|AUTO DEPLOY|USED|TRAFFIC ROUTER|HEARTBEAT|AGE',
      cells: /^all\|\*\|Rolling\|RollBack\|false\|\|Replicas\|false\|\d+s$/,
    },
    {
      shortName: 'whc',
      headings: 'NAME|SERVICE|SECRET|CONFIGURED|ENDPOINTS|AGE',
      cells: /^shop\|shop\|shop\|\|{"slack":"http:\/\/hooks"}\|\d+s$/,
    },
    {
      shortName: 'apic',
      headings: 'NAME|CLIENT ID|TIER|SCOPES|READY|SECRET|AGE',
      cells: /^ci\|ci\|Free\|\["a","b"\]\|\|ci\|\d+s$/,
    },
  ])('get $shortName -o wide prints every column', async ({ shortName, headings, cells }) => {
    const [heading = '', row = ''] = (await namespace.kubectl(['get', shortName, '-o', 'wide'])).split('\n');
    expect(heading.split(/ {2,}/).join('|')).toBe(headings);
    expect(cellsBelow(heading, row).join('|')).toMatch(cells);
  });

  it('get dj fits a terminal of 120 columns', async () => {
    const { status, ...job } = jobOf(`deploy-${'x'.repeat(43)}`);
    await send(deliveryJobKind, job);
    await change(`${pathOf(deliveryJobKind, job.name)}/status`, { status });
    const lines = (await namespace.kubectl(['get', 'dj'])).trimEnd().split('\n');
    await namespace.kubectl(['delete', 'dj', job.name]);
    expect(lines).toHaveLength(3);
    for (const line of lines) expect(line.trimEnd().length).toBeLessThanOrEqual(120);
  });

  it('get sreg leaves out what only wide output has', async () => {
    const [heading = ''] = (await namespace.kubectl(['get', 'sreg'])).split('\n');
    expect(heading.split(/ {2,}/).join('|')).toBe('NAME|SERVICE|INSTANCE|URL|PHASE|HEALTH|CHECK|SINCE|VERSION|AGE');
  });

  it('get rollcall lists every kind', async () => {
    const names = (await namespace.kubectl(['get', 'rollcall', '-o', 'name'])).trim().split('\n');
    const expected = objects.map(({ kind, name }) => `${kind.kind.toLowerCase()}.rollcall.dev/${name}`);
    expect(names.sort()).toEqual(expected.sort());
  });

  test.each([
    ['spec.serviceName=shop', 'shop'],
    ['spec.source=API', undefined],
    ['status.phase=Registered', 'shop'],
    ['status.phase=Expired', undefined],
  ])('get sreg --field-selector %s finds %s', async (selector, found) => {
    const names = await namespace.kubectl(['get', 'sreg', '--field-selector', selector, '-o', 'name']);
    expect(names).toBe(found === undefined ? '' : `serviceregistration.rollcall.dev/${found}\n`);
  });

  it('explain prints what a field means', async () => {
    const text = await namespace.kubectl(['explain', 'serviceregistration.spec.url']);
    expect(text).toContain('FIELD: url <string>');
    expect(text.replaceAll(/\s+/g, ' ')).toContain(
      'The base URL where the service can be reached: absolute, http or https',
    );
  });

  it('apply of a wrong manifest says what is wrong', async () => {
    const manifest = {
      apiVersion: serviceRegistrationKind.apiVersion,
      kind: serviceRegistrationKind.kind,
      metadata: { name: 'cart' },
      spec: { serviceName: 'cart', url: 'ftp://cart' },
    };
    await expect(namespace.kubectl(['apply', '-f', '-'], { stdin: JSON.stringify(manifest) })).rejects.toThrow(
      'spec.url: Invalid value: "ftp://cart": url must be an absolute http or https URL with a host',
    );
  });
});

/** With the longest words that a job has. */
function jobOf(name: string) {
  return {
    name,
    spec: { serviceName: 'long', operation: 'Deploy', version: '2', artifact: { url: 'long:2' } },
    status: { phase: 'Progressing', reason: 'ProgressDeadlineExceeded', weight: 100, actualWeight: 100 },
  };
}

/** Cuts a row of a kubectl table where the headings begin. */
function cellsBelow(heading: string, row: string): string[] {
  const starts = [...heading.matchAll(/(?:^| {2,})(?=\S)/g)].map(({ index, 0: gap }) => index + gap.length);
  return starts.map((start, column) => row.slice(start, starts[column + 1]).trim());
}
