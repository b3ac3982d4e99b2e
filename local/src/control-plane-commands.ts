import { join } from 'node:path';
import type { Certificates } from './certificates.ts';
import type { BinaryName } from './kubernetes-modules.ts';

/** A process of the control plane; named like its binary. */
export type ComponentName = Extract<
  BinaryName,
  'etcd' | 'kube-apiserver' | 'kube-controller-manager' | 'kube-scheduler' | 'kwok'
>;

/** Ports on 127.0.0.1. The controller manager, the scheduler and kwok do not listen. */
export interface ControlPlanePorts {
  readonly etcd: number;
  readonly etcdPeer: number;
  readonly apiServer: number;
}

export interface CommandContext {
  readonly directory: string;
  readonly ports: ControlPlanePorts;
  readonly certificates: Certificates;
  readonly tokenAuthFile: string;
  readonly kubeconfigPath: string;
  readonly stagesPath: string;
}

/** The arguments of each component. Only loopback addresses are listened on or advertised. */
export const componentArguments: Readonly<Record<ComponentName, (context: CommandContext) => string[]>> = {
  etcd: ({ directory, ports }) => {
    const client = `http://127.0.0.1:${ports.etcd}`;
    const peer = `http://127.0.0.1:${ports.etcdPeer}`;
    return [
      `--data-dir=${join(directory, 'etcd')}`,
      `--listen-client-urls=${client}`,
      `--advertise-client-urls=${client}`,
      `--listen-peer-urls=${peer}`,
      `--initial-advertise-peer-urls=${peer}`,
      `--initial-cluster=default=${peer}`,
      // The data need to survive our processes, not the machine.
      '--unsafe-no-fsync',
      '--log-level=warn',
    ];
  },
  'kube-apiserver': ({ ports, certificates, tokenAuthFile }) => [
    `--etcd-servers=http://127.0.0.1:${ports.etcd}`,
    '--bind-address=127.0.0.1',
    '--advertise-address=127.0.0.1',
    '--endpoint-reconciler-type=none',
    `--secure-port=${ports.apiServer}`,
    `--tls-cert-file=${certificates.serverCertificate}`,
    `--tls-private-key-file=${certificates.serverKey}`,
    `--client-ca-file=${certificates.ca}`,
    `--token-auth-file=${tokenAuthFile}`,
    '--authorization-mode=RBAC',
    '--allow-privileged=true',
    '--service-cluster-ip-range=10.96.0.0/16',
    '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
    `--service-account-key-file=${certificates.serviceAccountPublicKey}`,
    `--service-account-signing-key-file=${certificates.serviceAccountPrivateKey}`,
    // Ten times the defaults' order: what is measured against this server is our own code, not its
    // throttling.
    '--max-requests-inflight=2000',
    '--max-mutating-requests-inflight=1000',
  ],
  'kube-controller-manager': ({ certificates, kubeconfigPath }) => [
    `--kubeconfig=${kubeconfigPath}`,
    '--leader-elect=false',
    '--secure-port=0',
    `--root-ca-file=${certificates.ca}`,
    `--service-account-private-key-file=${certificates.serviceAccountPrivateKey}`,
    '--use-service-account-credentials=false',
    '--kube-api-qps=500',
    '--kube-api-burst=1000',
  ],
  'kube-scheduler': ({ kubeconfigPath }) => [
    `--kubeconfig=${kubeconfigPath}`,
    '--leader-elect=false',
    '--secure-port=0',
    '--kube-api-qps=500',
    '--kube-api-burst=1000',
  ],
  kwok: ({ kubeconfigPath, stagesPath }) => [
    `--kubeconfig=${kubeconfigPath}`,
    '--manage-all-nodes',
    '--node-ip=127.0.0.1',
    '--node-lease-duration-seconds=40',
    `--config=${stagesPath}`,
  ],
};
