import type { ObjectMeta } from '@rollcall/crds/object-meta.ts';
import type { DeliveryStrategy } from '@rollcall/crds/types.gen.ts';
import { entriesOf } from '@rollcall/platform/kube/managed-fields.ts';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { type Cluster, joinCluster } from './cluster.ts';
import {
  createPolicy,
  createService,
  createWorld,
  deploy,
  expectedState,
  quick,
  startOperator,
  stateOf,
  untilEnd,
  untilJob,
  type World,
} from './world.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await joinCluster(inject('deliveryCluster'));
});
afterAll(() => cluster?.[Symbol.asyncDispose]());

const strategies: readonly DeliveryStrategy[] = ['Rolling', 'BlueGreen', 'Canary'];
const nameOf = (strategy: DeliveryStrategy) => strategy.toLowerCase();
const NOTED = 'policy.example.com/image';

/** Has the API server note the image in every pod template of the namespace. */
async function amendTemplates({ namespace, onTestFinished }: World): Promise<void> {
  const { connection } = cluster;
  const note = `{'${NOTED}': object.spec.template.spec.containers[0].image}`;
  const template = `Object.spec.template{metadata: Object.spec.template.metadata{annotations: ${note}}}`;
  const objects = {
    mutatingadmissionpolicies: {
      kind: 'MutatingAdmissionPolicy',
      spec: {
        failurePolicy: 'Fail',
        reinvocationPolicy: 'Never',
        matchConstraints: {
          namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
          resourceRules: [
            { apiGroups: ['apps'], apiVersions: ['v1'], operations: ['CREATE', 'UPDATE'], resources: ['deployments'] },
          ],
        },
        mutations: [
          {
            patchType: 'ApplyConfiguration',
            applyConfiguration: { expression: `Object{spec: Object.spec{template: ${template}}}` },
          },
        ],
      },
    },
    mutatingadmissionpolicybindings: { kind: 'MutatingAdmissionPolicyBinding', spec: { policyName: namespace } },
  };
  for (const [plural, { kind, spec }] of Object.entries(objects)) {
    const path = `/apis/admissionregistration.k8s.io/v1/${plural}`;
    const body = { apiVersion: 'admissionregistration.k8s.io/v1', kind, metadata: { name: namespace }, spec };
    await connection.request({ method: 'POST', path, body });
    onTestFinished(async () => void (await connection.request({ method: 'DELETE', path: `${path}/${namespace}` })));
  }
}

async function notedBy({ deployments }: World, name: string): Promise<string | undefined> {
  const { spec } = await deployments.get(name);
  return spec.template.metadata?.annotations?.[NOTED];
}

test('a job that brings a new version succeeds, by each strategy, where policies of the cluster change its template', async (context) => {
  const world = await createWorld(cluster, context);
  await createPolicy(world, '*');
  for (const strategy of strategies) await createService(world, nameOf(strategy));
  await amendTemplates(world);
  // The API server takes a policy up some time after it was made.
  for (const strategy of strategies) {
    const touch = { metadata: { annotations: { touched: '' } } };
    await expect
      .poll(
        async () => {
          touch.metadata.annotations.touched += 'x';
          await world.deployments.patch(nameOf(strategy), touch);
          return notedBy(world, nameOf(strategy));
        },
        { timeout: 60_000, interval: 500 },
      )
      .toContain(':1');
  }
  await startOperator(world);
  const jobs = await Promise.all(strategies.map((strategy) => deploy(world, nameOf(strategy), { strategy })));
  const ended = await Promise.all(jobs.map((job) => untilEnd(world, job)));
  expect(ended.map(({ status }) => [status?.phase, status?.message])).toEqual(
    strategies.map(() => ['Succeeded', '2 was delivered']),
  );
  for (const strategy of strategies) {
    const { spec, metadata } = await world.deployments.get(nameOf(strategy));
    expect(await notedBy(world, nameOf(strategy))).toBe(spec.template.spec.containers[0]?.image);
    expect(metadata.annotations).toMatchObject({ 'rollcall.dev/version': '2' });
    expect(metadata.annotations).not.toHaveProperty('rollcall.dev/delivering');
  }
});

test('a job that is to bring nothing but what is newer leaves a Deployment alone that runs what is as new', async (context) => {
  const world = await createWorld(cluster, context);
  await createPolicy(world, '*');
  await createService(world, 'shop');
  await startOperator(world);
  const first = await untilEnd(world, await deploy(world, 'shop', { version: '2.0.0' }));
  const oldArtifact = { type: 'image', url: 'registry.example/shop:1' };
  expect(first.status).toMatchObject({ phase: 'Succeeded', oldVersion: '1', oldArtifact });
  const before = await world.deployments.get('shop');
  for (const version of ['1.9.0', '2.0.0', '2.0.0-rc.1']) {
    const { status } = await untilEnd(world, await deploy(world, 'shop', { version, onlyIfNewer: true }));
    expect(status).toMatchObject({ phase: 'RolledBack', failure: { reason: 'NotNewer' } });
    expect(status).not.toHaveProperty('startedAt');
  }
  const { metadata, spec } = await world.deployments.get('shop');
  expect(spec).toEqual(before.spec);
  expect([metadata.generation, metadata.annotations]).toEqual([
    before.metadata.generation,
    before.metadata.annotations,
  ]);
  const newer = await untilEnd(world, await deploy(world, 'shop', { version: '2.0.1', onlyIfNewer: true }));
  expect(newer.status).toMatchObject({ phase: 'Succeeded', oldVersion: '2.0.0' });
});

/** Has the API server refuse updates of Deployments of the namespace unless a CEL expression is true. */
async function refuseUnless(
  { namespace }: World,
  validation: { readonly expression: string; readonly message: string; readonly reason?: 'Forbidden' },
): Promise<() => Promise<void>> {
  const { connection } = cluster;
  const spec = {
    failurePolicy: 'Fail',
    matchConstraints: {
      namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
      resourceRules: [{ apiGroups: ['apps'], apiVersions: ['v1'], operations: ['UPDATE'], resources: ['deployments'] }],
    },
    validations: [validation],
  };
  const binding = { policyName: namespace, validationActions: ['Deny'] };
  const root = '/apis/admissionregistration.k8s.io/v1';
  const create = (plural: string, kind: string, content: object) =>
    connection.request({
      method: 'POST',
      path: `${root}/${plural}`,
      body: { apiVersion: 'admissionregistration.k8s.io/v1', kind, metadata: { name: namespace }, spec: content },
    });
  await create('validatingadmissionpolicies', 'ValidatingAdmissionPolicy', spec);
  await create('validatingadmissionpolicybindings', 'ValidatingAdmissionPolicyBinding', binding);
  return async () => {
    for (const plural of ['validatingadmissionpolicybindings', 'validatingadmissionpolicies']) {
      await connection.request({ method: 'DELETE', path: `${root}/${plural}/${namespace}` });
    }
  };
}

const isOld = (object: string) => `${object}.spec.template.spec.containers[0].image.endsWith(':1')`;

/** No Deployment that has another image gets the image `:1`. */
function refuseOldImage(world: World): Promise<() => Promise<void>> {
  const expression = `${isOld('oldObject')} || !${isOld('object')}`;
  return refuseUnless(world, { expression, message: 'the image 1 is banned' });
}

test('a template that a policy of the cluster refuses to restore is restored once it is allowed', async (context) => {
  const world = await createWorld(cluster, context);
  const { deployments } = world;
  await createPolicy(world, '*', { rolling: { ...quick.rolling, progressDeadlineSeconds: 4 } });
  const original = await createService(world, 'shop');
  await createService(world, 'probe', { replicas: 0, wait: false });
  const lift = await refuseOldImage(world);
  context.onTestFinished(() => lift().catch(() => undefined));
  const give = (tag: string) =>
    deployments.patch('probe', {
      spec: { template: { spec: { containers: [{ name: 'main', image: `registry.example/probe:${tag}` }] } } },
    });
  async function takeBack(): Promise<string> {
    await give('2');
    return give('1').then(
      () => 'taken',
      (error: Error) => error.message,
    );
  }
  // The API server takes a policy up some time after it was made.
  await expect.poll(takeBack, { timeout: 60_000, interval: 500 }).toContain('banned');

  await startOperator(world);
  const name = await deploy(world, 'shop', { strategy: 'Rolling', tag: 'unready-2' });
  const ended = await untilJob(world, name, ({ finishedAt }) => finishedAt !== undefined);
  expect(ended.status?.failure?.reason).toBe('RollbackIncomplete');
  expect(ended.status?.message).toContain('tried again');
  expect((await stateOf(world, 'shop')).image).toContain('unready-2');
  expect((await world.events(name)).map(({ reason, message }) => `${reason} ${message}`)).toContainEqual(
    expect.stringMatching(/^ChangeRejected .*the image 1 is banned/),
  );
  await lift();
  await untilEnd(world, name);
  await expect
    .poll(() => stateOf(world, 'shop'), { timeout: 60_000, interval: 200 })
    .toEqual(expectedState(original, '1'));
  const after = await deployments.get('shop');
  expect(after.metadata.annotations).not.toHaveProperty('rollcall.dev/delivering');
  expect(after.spec).toEqual(original.deployment.spec);
});

test('a job that was promoted ends where a policy of the cluster refuses to put right what somebody changed', async (context) => {
  const world = await createWorld(cluster, context);
  const { deployments } = world;
  const gated = {
    rolling: { ...quick.rolling, progressDeadlineSeconds: 4 },
    blueGreen: { bakeSeconds: 0, autoPromote: false },
  };
  await createPolicy(world, '*', gated);
  const original = await createService(world, 'shop');
  await startOperator(world);
  const name = await deploy(world, 'shop', { strategy: 'BlueGreen' });
  await untilJob(world, name, ({ phase }) => phase === 'Paused');
  const expression = "!object.metadata.name.endsWith('-green') || object.spec.replicas != 3";
  const lift = await refuseUnless(world, { expression, message: 'not three', reason: 'Forbidden' });
  context.onTestFinished(() => lift().catch(() => undefined));
  const green = 'shop-green';
  const scaleTo = (replicas: number) => deployments.patch(green, { spec: { replicas } });
  const refused = () =>
    scaleTo(4)
      .then(() => scaleTo(3))
      .then(
        () => 'taken',
        (error: Error) => error.message,
      );
  await expect.poll(refused, { timeout: 60_000, interval: 500 }).toContain('not three');
  // The operator may have made it three again just before the policy was taken up.
  await scaleTo(4);
  await world.jobs.patch(name, { spec: { promote: true } });
  const { status } = await untilJob(world, name, ({ finishedAt }) => finishedAt !== undefined);
  expect(status?.failure).toMatchObject({
    reason: 'ProgressDeadlineExceeded',
    message: expect.stringContaining('not three'),
  });
  await lift();
  await expect
    .poll(() => stateOf(world, 'shop'), { timeout: 60_000, interval: 200 })
    .toEqual(expectedState(original, '1'));
  await expect.poll(() => deployments.find(green), { timeout: 60_000, interval: 200 }).toBeUndefined();
});

const missing = (maxUnavailable: number) => ({ strategy: { rollingUpdate: { maxUnavailable } } });

function ownedIn({ metadata }: { readonly metadata: ObjectMeta }): readonly string[] {
  return entriesOf(metadata.managedFields, 'rollcall-operator').flatMap(({ fieldsV1 = {} }) =>
    Object.keys({ ...fieldsV1['f:spec'], ...fieldsV1['f:metadata'] }),
  );
}

test('after a job no field of the user belongs to the operator but what the delivery is', async (context) => {
  const world = await createWorld(cluster, context);
  await startOperator(world);
  await createPolicy(world, '*', { rolling: { ...quick.rolling, maxSurge: 2 } });
  const aborted = { strategy: 'Rolling', tag: 'missing-2' } as const;
  const cases = [
    ...strategies.map((strategy) => ({ strategy, tag: '2' })),
    aborted,
    { ...aborted, strategy: 'BlueGreen' } as const,
  ];
  await Promise.all(
    cases.map(async ({ strategy, tag }) => {
      const name = `${nameOf(strategy)}-${tag}`;
      await createService(world, name);
      const selector = { app: name };
      const flux = { fieldManager: 'flux' };
      await world.deployments.apply({ metadata: { name }, spec: missing(1) }, { ...flux, force: true });
      await world.services.apply({ metadata: { name }, spec: { selector } }, flux);
      const job = await deploy(world, name, { strategy, tag });
      const { status } = await untilEnd(world, job);
      expect(status?.phase).toBe(tag === '2' ? 'Succeeded' : 'RolledBack');
      const deployment = await world.deployments.get(name);
      expect(ownedIn(deployment)).toEqual(tag === '2' ? ['f:template', 'f:annotations'] : []);
      expect(ownedIn(await world.services.get(name))).toEqual([]);
      // Without force: nobody else is in the way.
      await world.deployments.apply({ metadata: { name }, spec: missing(2) }, flux);
      // A rolling one leaves the Service to who made it.
      if (strategy === 'Rolling') return;
      await world.services.apply({ metadata: { name }, spec: { selector: { ...selector, by: 'flux' } } }, flux);
    }),
  );
});

test('a Deployment that cannot have more pods than it asks for is delivered by its own strategy', async (context) => {
  const world = await createWorld(cluster, context);
  await startOperator(world);
  await createService(world, 'ports');
  const own = { strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } }, progressDeadlineSeconds: 77 };
  const container = { name: 'main', ports: [{ containerPort: 9100, hostPort: 9100 }] };
  const patch = JSON.stringify({ spec: { ...own, template: { spec: { containers: [container] } } } });
  await cluster.kubectl(['patch', 'deployment', 'ports', '-n', world.namespace, '-p', patch]);
  for (const [tag, phase] of [
    ['2', 'Succeeded'],
    ['missing-3', 'RolledBack'],
  ] as const) {
    const job = await deploy(world, 'ports', { version: tag, tag });
    await expect(untilEnd(world, job)).resolves.toMatchObject({ status: { phase } });
    await expect(world.deployments.get('ports')).resolves.toMatchObject({ spec: own });
  }
});

const NEW_KIND = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'orders.example.com' },
  spec: {
    group: 'example.com',
    names: { kind: 'Order', plural: 'orders', singular: 'order' },
    scope: 'Namespaced',
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
  },
};

test('a ResourceQuota of kinds that are as new as itself is counted long before Kubernetes does so by itself', async (context) => {
  const world = await createWorld(cluster, context);
  const { namespace } = world;
  const apply = (...objects: object[]) =>
    cluster.kubectl(['apply', '-n', namespace, '-f', '-'], {
      stdin: JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }),
    });
  context.onTestFinished(async () => void (await cluster.kubectl(['delete', 'crd', NEW_KIND.metadata.name])));
  const hard = { 'count/orders.example.com': '1', 'count/leases.coordination.k8s.io': '100' };
  await apply(NEW_KIND, { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'bounds' }, spec: { hard } });
  const quota = async () =>
    JSON.parse(await cluster.kubectl(['get', 'resourcequota', 'bounds', '-n', namespace, '-o', 'json']));
  await cluster.kubectl(['wait', '--for=condition=Established', '--timeout=60s', 'crd', NEW_KIND.metadata.name]);
  // Its controller has seen it.
  await expect.poll(async () => (await quota()).status?.hard, { timeout: 20_000 }).toEqual(hard);
  const order = (name: string) =>
    apply({ apiVersion: 'example.com/v1', kind: 'Order', metadata: { name } }).then(
      () => 'taken',
      (error: Error) => error.message,
    );
  await expect.poll(() => order('first'), { timeout: 20_000 }).toContain('status unknown for quota');

  await startOperator(world, { settings: { ROLLCALL_QUOTA: 'bounds' } });
  await expect.poll(() => order('first'), { timeout: 100_000, interval: 1000 }).toBe('taken');
  expect(await order('second')).toContain('exceeded quota');
  await expect.poll(async () => (await quota()).spec.hard, { timeout: 20_000 }).toEqual(hard);
});
