import { join } from 'node:path';
import { REPOSITORY } from '@rollcall/local/services.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { type ChartObject, podsOf } from '../chart/chart.ts';
import { runCommand } from './node/command.ts';
import {
  type ClusterNamespace,
  createClusterNamespace,
  noCluster,
  noNode,
  sharedCluster,
} from './support/namespace.ts';
import {
  enforcesPolicies,
  everything,
  inOrder,
  type NetworkPod,
  networkPolicy,
  REACH_POLL,
  reachOf,
  startNetworkPods,
  type Targets,
} from './support/network.ts';

describe.skipIf(noCluster)('NetworkPolicies', () => {
  const resources = new AsyncDisposableStack();
  let isEnforced: boolean;

  beforeAll(async () => {
    isEnforced = await enforcesPolicies(resources.use(await createClusterNamespace()));
    // On our own node it is up to us.
    if (!isEnforced && !noNode) throw new Error('NetworkPolicies are not in force on the node');
  });
  afterAll(() => resources.disposeAsync());

  describe('of the chart', () => {
    let release: ClusterNamespace;
    let pods: readonly NetworkPod[];
    let policies: readonly ChartObject[];
    let targets: Targets;

    beforeAll(async () => {
      if (!isEnforced) return;
      release = resources.use(await createClusterNamespace());
      const elsewhere = resources.use(await createClusterNamespace());
      const monitoring = resources.use(await createClusterNamespace());
      const objects = await renderChart(release.name, monitoring.name);
      policies = objects.filter(({ kind }) => kind === 'NetworkPolicy');
      const other = { labels: {}, ports: { other: 8080 } };
      pods = [
        ...podsOf(objects).map(({ template }) => standIn(release, template)),
        { ...other, namespace: release, name: 'stranger' },
        { ...other, namespace: elsewhere, name: 'visitor' },
        { ...other, namespace: monitoring, name: 'prometheus' },
      ];
      const api = await release.kubectl(
        'get',
        '--namespace=default',
        'service/kubernetes',
        '--output=jsonpath={.spec.clusterIP}',
      );
      targets = {
        ...(await startNetworkPods(pods)),
        'API server': `${api}:443`,
        'API server by name': 'kubernetes.default.svc:443',
      };
    });

    test('let only what must talk talk', async ({ skip }) => {
      skip(!isEnforced, 'the network of this cluster does not enforce NetworkPolicies');
      // What is cut off below is so by the policies alone.
      const reach = () => reachOf(pods, targets);
      await expect.poll(reach, REACH_POLL).toEqual(everything(pods, targets));

      await release.apply(...policies);
      const apiServer = ['API server', 'API server by name'];
      const others = ['stranger:8080', 'visitor:8080', 'prometheus:8080'];
      const anywhere = [...others, ...apiServer, 'test:8080'];
      const without = (own: string) => anywhere.filter((target) => target !== own);
      const registry = ['registry:3001', 'registry:50051'];
      const gateway = ['gateway:3000', 'gateway:50051'];
      const ofSubjects = ['communication:3003', 'payment:3004'];
      const admin = ['registry', 'gateway', 'operator', 'communication', 'payment', 'federation'].map(
        (name) => `${name}:9090`,
      );
      const allowed = inOrder({
        // Checks and webhooks are anywhere.
        operator: [...anywhere, ...registry, ...gateway],
        registry: [...anywhere, ...gateway, 'postgresql:5432'],
        // So are the services that register.
        gateway: [...anywhere, ...registry, ...ofSubjects, 'federation:3002', 'redis:6379'],
        federation: [...anywhere, ...registry, ...gateway, ...ofSubjects, 'postgresql:5432'],
        // Providers are anywhere, but at the ports of HTTPS and of mail alone.
        communication: [...registry, ...gateway, 'postgresql:5432', 'redis:6379'],
        payment: [...registry, ...gateway, 'postgresql:5432'],
        postgresql: [],
        redis: [],
        test: [...others, ...apiServer, ...registry, ...gateway, ...ofSubjects, 'federation:3002', 'redis:6379'],
        stranger: [...without('stranger:8080'), ...registry, ...gateway],
        // An ingress controller comes to the gateway alone, and so does who is in no namespace that
        // the values name.
        visitor: [...without('visitor:8080'), ...gateway],
        prometheus: [...without('prometheus:8080'), ...gateway, ...admin],
      });
      await expect.poll(reach, REACH_POLL).toEqual(allowed);
    });
  });

  /** Of the enforcement on our own node, which has to be as that of any network. */
  describe.skipIf(noNode)('on the node', () => {
    let namespace: ClusterNamespace;
    let pods: readonly NetworkPod[];
    let targets: Targets;
    let addresses: Readonly<Record<string, string>>;

    beforeAll(async () => {
      namespace = resources.use(await createClusterNamespace());
      const elsewhere = resources.use(await createClusterNamespace());
      pods = [
        { namespace, name: 'server', labels: { app: 'server' }, ports: { http: 8080, more: 8081, most: 8082 } },
        { namespace, name: 'near', labels: { app: 'near' }, ports: { http: 8085 } },
        { namespace: elsewhere, name: 'far', labels: { app: 'far' }, ports: { http: 8085 } },
      ];
      targets = await startNetworkPods(pods);
      addresses = Object.fromEntries(
        Object.entries(targets).map(([name, address]) => [name.split(':')[0], address.split(':')[0] ?? '']),
      );
    });

    const reach = () => reachOf(pods, targets);
    const server = ['server:8080', 'server:8081', 'server:8082'];
    const own = { podSelector: { matchLabels: { app: 'server' } } };
    const all = { server: ['near:8085', 'far:8085'], near: [...server, 'far:8085'], far: [...server, 'near:8085'] };
    const cases: readonly (readonly [string, () => object, Partial<typeof all>])[] = [
      ['nobody may come', () => ({ ...own, policyTypes: ['Ingress'] }), { near: ['far:8085'], far: ['near:8085'] }],
      ['it may go nowhere, but answers', () => ({ ...own, policyTypes: ['Egress'] }), { server: [] }],
      [
        'all of a block may come but a part of it',
        () => ({
          ...own,
          ingress: [{ from: [{ ipBlock: { cidr: '0.0.0.0/0', except: [`${addresses['far']}/32`] } }] }],
        }),
        { far: ['near:8085'] },
      ],
      [
        'one namespace may come, to a named port',
        () => ({ ...own, ingress: [{ from: [{ podSelector: {} }], ports: [{ port: 'more' }] }] }),
        { near: ['server:8081', 'far:8085'], far: ['near:8085'] },
      ],
      [
        'all may come to a range of ports',
        () => ({ ...own, ingress: [{ ports: [{ port: 8081, endPort: 8082 }] }] }),
        { near: ['server:8081', 'server:8082', 'far:8085'], far: ['server:8081', 'server:8082', 'near:8085'] },
      ],
      [
        'a pod of one label in all namespaces is where it may go',
        () => ({
          ...own,
          policyTypes: ['Egress'],
          egress: [
            {
              to: [{ namespaceSelector: {}, podSelector: { matchLabels: { app: 'far' } } }],
              ports: [{ port: 'http' }],
            },
          ],
        }),
        { server: ['far:8085'] },
      ],
    ];

    test.each(cases)('%s', async (_, spec, expected) => {
      await namespace.apply(networkPolicy('policy', spec()));
      await expect.poll(reach, REACH_POLL).toEqual(inOrder({ ...all, ...expected }));
      await namespace.kubectl('delete', 'networkpolicy', 'policy');
      await expect.poll(reach, REACH_POLL).toEqual(inOrder(all));
    });
  });
});

/**
 * A pod with the labels of one of the chart's that listens where that does, and on a port that
 * nobody knows.
 */
function standIn(
  namespace: ClusterNamespace,
  { metadata, spec }: ReturnType<typeof podsOf>[number]['template'],
): NetworkPod {
  const declared = spec.containers.flatMap(
    ({ ports = [] }) => ports as readonly { readonly name: string; readonly containerPort: number }[],
  );
  return {
    namespace,
    name: metadata.labels['app.kubernetes.io/component'] ?? '',
    labels: metadata.labels,
    ports: { ...Object.fromEntries(declared.map(({ name, containerPort }) => [name, containerPort])), other: 8080 },
  };
}

/** The chart with its defaults, where Prometheus is in a namespace of the test's own. */
async function renderChart(namespace: string, monitoring: string): Promise<ChartObject[]> {
  const from = [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': monitoring } } }];
  const chart = join(REPOSITORY, 'charts', 'rollcall');
  const metrics = `networkPolicy.metrics.from=${JSON.stringify(from)}`;
  const output = await runCommand([
    sharedCluster().helm,
    'template',
    'rollcall',
    chart,
    '--namespace',
    namespace,
    '--set-json',
    metrics,
  ]);
  const documents = parseAllDocuments(output);
  return Array.isArray(documents) ? documents.map((document) => document.toJS() as ChartObject) : [];
}
