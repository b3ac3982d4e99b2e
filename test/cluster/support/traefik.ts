import { runKubectl } from '@rollcall/local/kubectl.ts';
import { defaultCacheDirectory } from '@rollcall/local/kubernetes-binaries.ts';
import { findPublishedCrds } from '../../support/published-crds.ts';
import { type ClusterNamespace, createClusterNamespace, sharedCluster, waitForRollout } from './namespace.ts';

const NAME = 'traefik';
const OWNER_LABEL = 'rollcall.dev/test-namespace';
/** The entry point's; a Gateway's listener must have the same. */
const WEB_PORT = 8000;
const PING_PORT = 8082;

const GATEWAY_API = 'gateway.networking.k8s.io';
const ROUTED = [
  'gatewayclasses',
  'gateways',
  'httproutes',
  'grpcroutes',
  'tlsroutes',
  'tcproutes',
  'backendtlspolicies',
];
const READ = ['get', 'list', 'watch'];

/**
 * Traefik as an Ingress controller and as the Gateway API's implementation, with a Gateway to which
 * routes of all namespaces may attach.
 */
export interface TestTraefik extends AsyncDisposable {
  /** For `ingressClassName`. */
  readonly ingressClass: string;
  /** The Gateway, for `parentRefs`. */
  readonly gateway: { readonly name: string; readonly namespace: string };
  /** Of its pod, the only one there. */
  readonly namespace: ClusterNamespace;
  /** Where pods reach it. */
  readonly url: string;
  /** Where we do, or undefined where we cannot. */
  readonly hostUrl: string | undefined;
}

/**
 * Runs Traefik, in a namespace of its own. What it needs beside that namespace goes with it, but
 * for the Gateway API's definitions.
 */
export async function openTraefik(): Promise<TestTraefik> {
  await installGatewayApi();
  const { nodeAddress } = sharedCluster();
  const namespace = await createClusterNamespace();
  try {
    await namespace.apply(...(await manifests(namespace)));
    await waitForRollout(namespace, NAME);
    const nodePort = await namespace.kubectl('get', 'service', NAME, '--output=jsonpath={.spec.ports[0].nodePort}');
    return {
      ingressClass: namespace.name,
      gateway: { name: NAME, namespace: namespace.name },
      namespace,
      url: `http://${NAME}.${namespace.name}.svc.cluster.local`,
      hostUrl: nodeAddress === undefined ? undefined : `http://${nodeAddress}:${nodePort}`,
      [Symbol.asyncDispose]: () => namespace[Symbol.asyncDispose](),
    };
  } catch (err) {
    await namespace[Symbol.asyncDispose]();
    throw err;
  }
}

async function installGatewayApi(): Promise<void> {
  const crds = await findPublishedCrds('gateway-api', {
    cacheDirectory: defaultCacheDirectory(process.env),
    log: console.error,
  });
  await runKubectl(sharedCluster(), ['apply', '--server-side', '-f', crds]);
  await runKubectl(sharedCluster(), ['wait', '--for=condition=Established', '--timeout=60s', 'crd', '--all']);
}

/** Everything that belongs to the whole cluster is named after the namespace and owned by it. */
async function manifests(namespace: ClusterNamespace): Promise<object[]> {
  const { name } = namespace;
  const uid = await namespace.kubectl('get', 'namespace', name, '--output=jsonpath={.metadata.uid}');
  const metadata = { name: NAME };
  const shared = {
    name,
    labels: { [OWNER_LABEL]: name },
    ownerReferences: [{ apiVersion: 'v1', kind: 'Namespace', name, uid }],
  };
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
    { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: shared, rules: rules() },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: shared,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
      subjects: [{ kind: 'ServiceAccount', name: NAME, namespace: name }],
    },
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec: deployment(name) },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: {
        type: 'NodePort',
        selector: { app: NAME },
        ports: [{ name: 'web', port: 80, targetPort: WEB_PORT }],
      },
    },
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'IngressClass',
      metadata: shared,
      spec: { controller: 'traefik.io/ingress-controller' },
    },
    {
      apiVersion: `${GATEWAY_API}/v1`,
      kind: 'GatewayClass',
      metadata: shared,
      spec: { controllerName: 'traefik.io/gateway-controller' },
    },
    {
      apiVersion: `${GATEWAY_API}/v1`,
      kind: 'Gateway',
      metadata,
      spec: {
        gatewayClassName: name,
        listeners: [{ name: 'web', protocol: 'HTTP', port: WEB_PORT, allowedRoutes: { namespaces: { from: 'All' } } }],
      },
    },
  ];
}

function rules(): object[] {
  return [
    { apiGroups: [''], resources: ['services', 'secrets', 'configmaps', 'namespaces', 'nodes'], verbs: READ },
    { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: READ },
    { apiGroups: ['networking.k8s.io'], resources: ['ingresses', 'ingressclasses'], verbs: READ },
    { apiGroups: ['networking.k8s.io'], resources: ['ingresses/status'], verbs: ['update'] },
    { apiGroups: [GATEWAY_API], resources: [...ROUTED, 'referencegrants', 'listenersets'], verbs: READ },
    { apiGroups: [GATEWAY_API], resources: ROUTED.map((name) => `${name}/status`), verbs: ['update', 'patch'] },
  ];
}

/** @param owner Ingresses of this class are served, and Gateways whose class has this label. */
function programArguments(owner: string): string[] {
  const { nodeAddress } = sharedCluster();
  return [
    `--entrypoints.web.address=:${WEB_PORT}`,
    `--entrypoints.ping.address=:${PING_PORT}`,
    '--ping.entrypoint=ping',
    '--providers.kubernetesgateway=true',
    `--providers.kubernetesgateway.labelselector=${OWNER_LABEL}=${owner}`,
    '--providers.kubernetesingress=true',
    `--providers.kubernetesingress.ingressclass=${owner}`,
    // As Kubernetes has it: /api/v1 does not lead to /api/v1x.
    '--providers.kubernetesingress.strictprefixmatching=true',
    ...(nodeAddress === undefined
      ? []
      : [
          `--providers.kubernetesgateway.statusaddress.ip=${nodeAddress}`,
          `--providers.kubernetesingress.ingressendpoint.ip=${nodeAddress}`,
        ]),
    '--providers.providersthrottleduration=200ms',
    '--global.checknewversion=false',
    '--global.sendanonymoususage=false',
  ];
}

function deployment(owner: string): object {
  const { traefikImage: image } = sharedCluster();
  return {
    selector: { matchLabels: { app: NAME } },
    template: {
      metadata: { labels: { app: NAME } },
      spec: {
        serviceAccountName: NAME,
        terminationGracePeriodSeconds: 2,
        containers: [
          {
            name: NAME,
            image,
            args: programArguments(owner),
            readinessProbe: { httpGet: { path: '/ping', port: PING_PORT }, periodSeconds: 1, timeoutSeconds: 10 },
          },
        ],
      },
    },
  };
}
