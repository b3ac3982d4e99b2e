import type { BinaryName } from '@rollcall/local/kubernetes-modules.ts';
import { PAUSE_IMAGE } from '../images/images.ts';
import type { NodeAddresses } from './addresses.ts';
import type { PkiFile } from './certificates.ts';
import { CNI_PLUGINS } from './packages.ts';

/** What runs as a process on the node. */
export type NodeComponent = Extract<
  BinaryName,
  'etcd' | 'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler' | 'kubelet' | 'kube-proxy'
>;

export interface NodeContext {
  readonly addresses: NodeAddresses;
  readonly nodeName: string;
  readonly pki: PkiFile;
  /** A function from a name to a path in the state directory. */
  readonly file: (name: string) => string;
}

const ETCD = 'http://127.0.0.1:2379';
const ETCD_PEER = 'http://127.0.0.1:2380';

/**
 * The arguments of each component. The ports may be the usual ones: the network namespace is the
 * node's own.
 */
export const nodeArguments: Readonly<Record<NodeComponent, (context: NodeContext) => string[]>> = {
  etcd: ({ file }) => [
    `--data-dir=${file('etcd')}`,
    `--listen-client-urls=${ETCD}`,
    `--advertise-client-urls=${ETCD}`,
    `--listen-peer-urls=${ETCD_PEER}`,
    `--initial-advertise-peer-urls=${ETCD_PEER}`,
    `--initial-cluster=default=${ETCD_PEER}`,
    '--unsafe-no-fsync',
    '--log-level=warn',
  ],
  'kube-apiserver': ({ addresses, pki }) => [
    `--etcd-servers=${ETCD}`,
    '--bind-address=0.0.0.0',
    '--secure-port=6443',
    `--advertise-address=${addresses.node}`,
    `--tls-cert-file=${pki('apiserver.crt')}`,
    `--tls-private-key-file=${pki('apiserver.key')}`,
    `--client-ca-file=${pki('ca.crt')}`,
    `--kubelet-client-certificate=${pki('apiserver-kubelet.crt')}`,
    `--kubelet-client-key=${pki('apiserver-kubelet.key')}`,
    `--kubelet-certificate-authority=${pki('ca.crt')}`,
    '--kubelet-preferred-address-types=InternalIP',
    `--requestheader-client-ca-file=${pki('front-proxy-ca.crt')}`,
    '--requestheader-allowed-names=front-proxy-client',
    '--requestheader-extra-headers-prefix=X-Remote-Extra-',
    '--requestheader-group-headers=X-Remote-Group',
    '--requestheader-username-headers=X-Remote-User',
    `--proxy-client-cert-file=${pki('front-proxy.crt')}`,
    `--proxy-client-key-file=${pki('front-proxy.key')}`,
    '--enable-aggregator-routing=true',
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    '--allow-privileged=true',
    `--service-cluster-ip-range=${addresses.serviceRange}`,
    '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
    `--service-account-key-file=${pki('service-accounts.pub')}`,
    `--service-account-signing-key-file=${pki('service-accounts.key')}`,
  ],
  'kube-controller-manager': ({ addresses, pki }) => [
    ...clientArguments(pki('controller-manager.kubeconfig')),
    '--allocate-node-cidrs=true',
    `--cluster-cidr=${addresses.podRange}`,
    '--node-cidr-mask-size=24',
    `--service-cluster-ip-range=${addresses.serviceRange}`,
    `--cluster-signing-cert-file=${pki('ca.crt')}`,
    `--cluster-signing-key-file=${pki('ca.key')}`,
    `--root-ca-file=${pki('ca.crt')}`,
    `--service-account-private-key-file=${pki('service-accounts.key')}`,
    '--use-service-account-credentials=true',
    '--kube-api-qps=500',
    '--kube-api-burst=1000',
  ],
  'kube-scheduler': ({ pki }) => [
    ...clientArguments(pki('scheduler.kubeconfig')),
    '--kube-api-qps=500',
    '--kube-api-burst=1000',
  ],
  kubelet: ({ addresses, nodeName, pki, file }) => [
    `--kubeconfig=${pki('kubelet.kubeconfig')}`,
    `--config=${file('kubelet.json')}`,
    '--root-dir=/var/lib/kubelet',
    `--hostname-override=${nodeName}`,
    `--node-ip=${addresses.node}`,
  ],
  'kube-proxy': ({ file }) => [`--config=${file('kube-proxy.json')}`],
};

function clientArguments(kubeconfig: string): string[] {
  return [
    `--kubeconfig=${kubeconfig}`,
    `--authentication-kubeconfig=${kubeconfig}`,
    `--authorization-kubeconfig=${kubeconfig}`,
    '--bind-address=127.0.0.1',
    '--leader-elect=false',
  ];
}

const CONTAINERD_SOCKET = '/run/containerd/containerd.sock';

/** Configuration files by their names in the state directory. */
export function nodeFiles(context: NodeContext): Readonly<Record<string, string>> {
  return {
    'kubelet.json': JSON.stringify(kubeletConfiguration(context)),
    'kube-proxy.json': JSON.stringify(proxyConfiguration(context)),
    'containerd.toml': containerdConfiguration(context),
    'cni/10-pods.conflist': JSON.stringify(podNetwork(context)),
  };
}

function kubeletConfiguration({ addresses, pki }: NodeContext): object {
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    failCgroupV1: false,
    cgroupDriver: 'cgroupfs',
    cgroupRoot: `/${addresses.cgroup}`,
    enforceNodeAllocatable: [],
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: pki('ca.crt') },
    },
    authorization: { mode: 'Webhook' },
    tlsCertFile: pki('kubelet-server.crt'),
    tlsPrivateKeyFile: pki('kubelet-server.key'),
    clusterDNS: [addresses.dns],
    clusterDomain: 'cluster.local',
    resolvConf: '/etc/resolv.conf',
    containerRuntimeEndpoint: `unix://${CONTAINERD_SOCKET}`,
    volumePluginDir: '/var/lib/kubelet/volume-plugins',
    failSwapOn: false,
    serializeImagePulls: false,
    // A full disk must not delete the only copy of an image, or evict anything.
    imageGCHighThresholdPercent: 100,
    imageGCLowThresholdPercent: 99,
    evictionHard: {
      'memory.available': '0%',
      'nodefs.available': '0%',
      'nodefs.inodesFree': '0%',
      'imagefs.available': '0%',
      'imagefs.inodesFree': '0%',
    },
  };
}

function proxyConfiguration({ addresses, nodeName, pki }: NodeContext): object {
  return {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    mode: 'iptables',
    clusterCIDR: addresses.podRange,
    hostnameOverride: nodeName,
    clientConnection: { kubeconfig: pki('proxy.kubeconfig') },
    // Zeros leave the kernel's settings, which are the whole machine's, as they are.
    conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
  };
}

/** Version 2 of the format, which containerd 1.6 to 2 read. */
function containerdConfiguration({ file }: NodeContext): string {
  const cri = 'plugins."io.containerd.grpc.v1.cri"';
  return `version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
[grpc]
  address = "${CONTAINERD_SOCKET}"
[${cri}]
  sandbox_image = "${PAUSE_IMAGE}"
  # Lowering a score needs a capability that root in a container lacks.
  restrict_oom_score_adj = true
  stream_server_address = "127.0.0.1"
  [${cri}.cni]
    bin_dir = "${CNI_PLUGINS}"
    conf_dir = "${file('cni')}"
  [${cri}.containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [${cri}.containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
`;
}

function podNetwork({ addresses }: NodeContext): object {
  return {
    cniVersion: '0.4.0',
    name: 'pods',
    plugins: [
      {
        type: 'bridge',
        bridge: 'cni0',
        isGateway: true,
        ipMasq: true,
        hairpinMode: true,
        ipam: {
          type: 'host-local',
          ranges: [[{ subnet: addresses.podRange }]],
          routes: [{ dst: '0.0.0.0/0' }],
          dataDir: '/run/cni-ipam',
        },
      },
      { type: 'portmap', capabilities: { portMappings: true } },
    ],
  };
}
