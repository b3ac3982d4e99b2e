import { type ClusterNamespace, waitForRollout } from './namespace.ts';

const NAME = 'traefik';
/** The entry point, to which a Gateway's listener must be the same port. */
const WEB_PORT = 8000;
const PING_PORT = 8082;

const ARGUMENTS = [
  `--entrypoints.web.address=:${WEB_PORT}`,
  `--entrypoints.ping.address=:${PING_PORT}`,
  '--ping.entrypoint=ping',
  '--providers.kubernetesgateway=true',
  '--providers.providersthrottleduration=200ms',
  '--global.checknewversion=false',
  '--global.sendanonymoususage=false',
];

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

/** A Gateway, to which routes of all namespaces may attach. */
export interface TestGateway {
  /** For `parentRefs`. */
  readonly reference: { readonly name: string; readonly namespace: string };
  /** Where pods reach it. */
  readonly url: string;
}

/** Runs Traefik as the Gateway API's implementation. The definitions of the Gateway API must be there. */
export async function installTraefik(namespace: ClusterNamespace, image: string): Promise<TestGateway> {
  const metadata = { name: NAME };
  const role = `${NAME}-${namespace.name}`;
  await namespace.apply(
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
    { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: role }, rules: rules() },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: role },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: [{ kind: 'ServiceAccount', name: NAME, namespace: namespace.name }],
    },
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec: deployment(image) },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: { selector: { app: NAME }, ports: [{ name: 'web', port: 80, targetPort: WEB_PORT }] },
    },
    {
      apiVersion: `${GATEWAY_API}/v1`,
      kind: 'GatewayClass',
      metadata: { name: role },
      spec: { controllerName: 'traefik.io/gateway-controller' },
    },
    {
      apiVersion: `${GATEWAY_API}/v1`,
      kind: 'Gateway',
      metadata,
      spec: {
        gatewayClassName: role,
        listeners: [{ name: 'web', protocol: 'HTTP', port: WEB_PORT, allowedRoutes: { namespaces: { from: 'All' } } }],
      },
    },
  );
  await waitForRollout(namespace, NAME);
  return {
    reference: { name: NAME, namespace: namespace.name },
    url: `http://${NAME}.${namespace.name}.svc.cluster.local`,
  };
}

function rules(): object[] {
  return [
    { apiGroups: [''], resources: ['services', 'secrets', 'configmaps', 'namespaces', 'nodes'], verbs: READ },
    { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: READ },
    { apiGroups: [GATEWAY_API], resources: [...ROUTED, 'referencegrants', 'listenersets'], verbs: READ },
    { apiGroups: [GATEWAY_API], resources: ROUTED.map((name) => `${name}/status`), verbs: ['update', 'patch'] },
  ];
}

function deployment(image: string): object {
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
            args: ARGUMENTS,
            readinessProbe: { httpGet: { path: '/ping', port: PING_PORT }, periodSeconds: 1 },
          },
        ],
      },
    },
  };
}
