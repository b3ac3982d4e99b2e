import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type ClientIdentity,
  createAuthority,
  createCertificate,
  createServiceAccountKeys,
} from '@rollcall/local/certificates.ts';
import { writeKubeconfig } from '@rollcall/local/kubeconfig.ts';
import type { NodeAddresses } from './addresses.ts';

/** Clients of the API server with a kubeconfig of their own, `<name>.kubeconfig`. */
const CLIENTS = {
  admin: '/O=system:masters/CN=kubernetes-admin',
  'controller-manager': '/CN=system:kube-controller-manager',
  scheduler: '/CN=system:kube-scheduler',
  proxy: '/CN=system:kube-proxy',
} as const;

/** A function from names such as `ca.crt` and `admin.kubeconfig` to their paths. */
export type PkiFile = (name: string) => string;

export interface PkiOptions {
  readonly directory: string;
  readonly addresses: NodeAddresses;
  readonly nodeName: string;
}

/** Makes every key, certificate and kubeconfig of a cluster with one node. */
export async function createPki({ directory, addresses, nodeName }: PkiOptions): Promise<PkiFile> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const file = (name: string): string => join(directory, name);
  const authority = file('ca');
  await Promise.all([
    createAuthority(authority, 'rollcall-node-ca'),
    createAuthority(file('front-proxy-ca'), 'rollcall-front-proxy-ca'),
  ]);
  const kubelet = `/O=system:nodes/CN=system:node:${nodeName}`;
  const client = async (name: string, subject: string): Promise<void> => {
    await createCertificate({ file: file(name), authority, subject });
    await writeKubeconfig(file(`${name}.kubeconfig`), {
      server: `https://${addresses.node}:6443`,
      client: identity(file, name),
      namespace: 'default',
    });
  };
  await Promise.all([
    ...Object.entries({ ...CLIENTS, kubelet }).map(([name, subject]) => client(name, subject)),
    createCertificate({
      file: file('apiserver'),
      authority,
      subject: '/CN=kube-apiserver',
      names: [
        ...['kubernetes', 'kubernetes.default', 'kubernetes.default.svc', 'kubernetes.default.svc.cluster.local'].map(
          dns,
        ),
        ...['127.0.0.1', addresses.apiServer, addresses.node].map(ip),
      ].join(),
    }),
    createCertificate({
      file: file('apiserver-kubelet'),
      authority,
      subject: '/O=system:masters/CN=kube-apiserver-kubelet-client',
    }),
    createCertificate({
      file: file('front-proxy'),
      authority: file('front-proxy-ca'),
      subject: '/CN=front-proxy-client',
    }),
    createCertificate({
      file: file('kubelet-server'),
      authority,
      subject: kubelet,
      names: [dns(nodeName), ip(addresses.node), ip('127.0.0.1')].join(),
    }),
    createServiceAccountKeys(file('service-accounts')),
  ]);
  return file;
}

/** The identity of a client that `createPki` has made. */
export function identity(file: PkiFile, name: string): ClientIdentity {
  return { ca: file('ca.crt'), certificate: file(`${name}.crt`), key: file(`${name}.key`) };
}

function dns(name: string): string {
  return `DNS:${name}`;
}

function ip(address: string): string {
  return `IP:${address}`;
}
