import type { DeliveryStrategy } from '@rollcall/crds/types.gen.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Cluster, startCluster } from './cluster.ts';
import { createPolicy, createService, createWorld, deploy, startOperator, untilEnd, type World } from './world.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster();
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
    strategies.map(() => ['Succeeded', '2 runs']),
  );
  for (const strategy of strategies) {
    const { spec, metadata } = await world.deployments.get(nameOf(strategy));
    expect(await notedBy(world, nameOf(strategy))).toBe(spec.template.spec.containers[0]?.image);
    expect(metadata.annotations).toMatchObject({ 'rollcall.dev/version': '2' });
    expect(metadata.annotations).not.toHaveProperty('rollcall.dev/delivering');
  }
});
