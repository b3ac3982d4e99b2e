import { COREDNS_IMAGE } from '../images/images.ts';
import type { NodeAddresses } from './addresses.ts';

const NAME = 'coredns';
const NAMESPACE = 'kube-system';
const LABELS = { 'k8s-app': 'kube-dns' };

/**
 * The cluster's own names; any other does not exist. Two blocks, because `template` would come
 * before `kubernetes` in one.
 */
const COREFILE = `cluster.local in-addr.arpa ip6.arpa {
  errors
  health :8080
  ready :8181
  kubernetes {
    pods insecure
    ttl 5
  }
  cache 5
  loadbalance
}
. {
  errors
  template ANY ANY {
    rcode NXDOMAIN
  }
}
`;

/** The manifest of the cluster's DNS, for `kubectl apply`. */
export function corednsManifest({ dns }: NodeAddresses): string {
  const metadata = { name: NAME, namespace: NAMESPACE };
  const rbac = 'rbac.authorization.k8s.io';
  const verbs = ['list', 'watch'];
  const items = [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRole',
      metadata: { name: NAME },
      rules: [
        { apiGroups: [''], resources: ['endpoints', 'services', 'pods', 'namespaces'], verbs },
        { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs },
      ],
    },
    {
      apiVersion: `${rbac}/v1`,
      kind: 'ClusterRoleBinding',
      metadata: { name: NAME },
      roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: NAME },
      subjects: [{ kind: 'ServiceAccount', ...metadata }],
    },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { Corefile: COREFILE } },
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { ...metadata, labels: LABELS }, spec: deployment() },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'kube-dns', namespace: NAMESPACE, labels: LABELS },
      spec: {
        clusterIP: dns,
        selector: LABELS,
        ports: [
          { name: 'dns', port: 53, protocol: 'UDP' },
          { name: 'dns-tcp', port: 53, protocol: 'TCP' },
        ],
      },
    },
  ];
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
}

function deployment(): object {
  return {
    replicas: 1,
    selector: { matchLabels: LABELS },
    template: {
      metadata: { labels: LABELS },
      spec: {
        serviceAccountName: NAME,
        // The node's own resolver settings, which are empty, and not itself.
        dnsPolicy: 'Default',
        containers: [
          {
            name: NAME,
            image: COREDNS_IMAGE,
            imagePullPolicy: 'Never',
            args: ['-conf', '/etc/coredns/Corefile'],
            ports: [
              { containerPort: 53, protocol: 'UDP' },
              { containerPort: 53, protocol: 'TCP' },
            ],
            // Slow, on a machine with too much to do, is no reason to take the cluster's only DNS
            // out of its Service.
            readinessProbe: {
              httpGet: { path: '/ready', port: 8181 },
              periodSeconds: 1,
              timeoutSeconds: 10,
              failureThreshold: 10,
            },
            volumeMounts: [{ name: 'config', mountPath: '/etc/coredns' }],
          },
        ],
        volumes: [{ name: 'config', configMap: { name: NAME } }],
      },
    },
  };
}
