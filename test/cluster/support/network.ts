import { waitUntil } from '@rollcall/local/wait.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { type ClusterNamespace, sharedCluster } from './namespace.ts';

/** A pod that listens, and tries to reach others on request; see app/network.ts. */
export interface NetworkPod {
  readonly namespace: ClusterNamespace;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** What it listens on, by the names of the ports. */
  readonly ports: Readonly<Record<string, number>>;
}

/** Addresses by what they are called in the tests, as `<host>:<port>`. */
export type Targets = Readonly<Record<string, string>>;

/** Which targets each pod reaches, by their names, sorted. */
type Reach = Readonly<Record<string, readonly string[]>>;

/** For `expect.poll`: longer than any network needs to apply a policy, on a busy machine too. */
export const REACH_POLL = { timeout: 120_000, interval: 500 };

/**
 * Starts the pods.
 *
 * @returns `<pod>:<port>` for each port of each.
 */
export async function startNetworkPods(pods: readonly NetworkPod[]): Promise<Targets> {
  for (const namespace of new Set(pods.map((pod) => pod.namespace))) {
    await namespace.apply(...pods.filter((pod) => pod.namespace === namespace).map(manifest));
  }
  const targets = await Promise.all(
    pods.map(async ({ namespace, name, ports }) => {
      await namespace.kubectl('wait', '--for=condition=Ready', `pod/${name}`, '--timeout=180s');
      const address = await namespace.kubectl('get', 'pod', name, '--output=jsonpath={.status.podIP}');
      return Object.values(ports).map((port) => [`${name}:${port}`, `${address}:${port}`] as const);
    }),
  );
  return Object.fromEntries(targets.flat());
}

function manifest({ name, labels, ports }: NetworkPod): object {
  const numbers = Object.values(ports);
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels },
    spec: {
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      terminationGracePeriodSeconds: 1,
      containers: [
        {
          name: 'network',
          image: `${sharedCluster().appRepository}:v1`,
          command: ['/bin/node', '/app/network.ts'],
          env: [{ name: 'PORTS', value: numbers.join(',') }],
          ports: Object.entries(ports).map(([port, containerPort]) => ({ name: port, containerPort })),
          readinessProbe: { tcpSocket: { port: numbers[0] }, periodSeconds: 1 },
        },
      ],
    },
  };
}

/**
 * Lets every pod try to reach every target but its own. To be compared as a whole: what is cut off
 * is distinguished from what is broken by what is reached at the same time.
 */
export async function reachOf(pods: readonly NetworkPod[], targets: Targets): Promise<Reach> {
  const reach = await Promise.all(
    pods.map(async ({ namespace, name }) => {
      const others = Object.entries(targets).filter(([target]) => !target.startsWith(`${name}:`));
      const addresses = others.map(([, address]) => address);
      const printed = await namespace.kubectl('exec', name, '--', '/bin/node', '/app/network.ts', ...addresses);
      const reached: readonly string[] = JSON.parse(printed);
      return [name, others.flatMap(([target, address]) => (reached.includes(address) ? [target] : []))] as const;
    }),
  );
  return inOrder(Object.fromEntries(reach));
}

/** What every pod reaches where nothing keeps it from it: all but itself. */
export function everything(pods: readonly NetworkPod[], targets: Targets): Reach {
  const names = Object.keys(targets);
  return inOrder(
    Object.fromEntries(pods.map(({ name }) => [name, names.filter((target) => !target.startsWith(`${name}:`))])),
  );
}

/** As {@link reachOf} returns it. */
export function inOrder(reach: Reach): Reach {
  return Object.fromEntries(Object.entries(reach).map(([name, reached]) => [name, reached.toSorted()]));
}

/** Long enough for any network that does. */
const ENFORCED_WITHIN_MS = 60_000;

/**
 * Whether the network does as NetworkPolicies say: whether a pod that nobody may connect to becomes
 * unreachable.
 */
export async function enforcesPolicies(namespace: ClusterNamespace): Promise<boolean> {
  const canary = { namespace, name: 'canary', labels: { app: 'canary' }, ports: { http: 8080 } };
  const caller = { ...canary, name: 'caller', labels: { app: 'caller' } };
  const targets = await startNetworkPods([canary, caller]);
  const isReached = async () => (await reachOf([caller], targets))['caller']?.includes('canary:8080') ?? false;
  await waitUntil('a pod reaches another one where no policy is', isReached, { timeoutMs: REACH_POLL.timeout });
  const spec = { podSelector: { matchLabels: canary.labels }, policyTypes: ['Ingress'] };
  await namespace.apply(networkPolicy('canary', spec));
  const deadline = performance.now() + ENFORCED_WITHIN_MS;
  while (performance.now() < deadline) {
    if (!(await isReached())) return true;
    await sleep(500);
  }
  return false;
}

export function networkPolicy(name: string, spec: object): object {
  return { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata: { name }, spec };
}
