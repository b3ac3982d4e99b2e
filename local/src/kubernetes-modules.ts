import { createHash } from 'node:crypto';
import { join } from 'node:path';
import chosen from '../kubernetes/versions.json' with { type: 'json' };

/** The pinned Go modules, one folder each below `local/kubernetes/`. */
export const MODULES = {
  kubernetes: { path: 'k8s.io/kubernetes', name: 'rollcall.dev/kubernetes-binaries' },
  etcd: { path: 'go.etcd.io/etcd/server/v3', name: 'rollcall.dev/etcd-binary' },
  kwok: { path: 'sigs.k8s.io/kwok', name: 'rollcall.dev/kwok-binary' },
  coredns: { path: 'github.com/coredns/coredns', name: 'rollcall.dev/coredns-binary' },
  /** Our own, of nothing but the standard library. */
  pause: { path: undefined, name: 'rollcall.dev/pause-binary' },
  helm: { path: 'helm.sh/helm/v4', name: 'rollcall.dev/helm-binary' },
  mailpit: { path: 'github.com/axllent/mailpit', name: 'rollcall.dev/mailpit-binary' },
  toxiproxy: { path: 'github.com/Shopify/toxiproxy/v2', name: 'rollcall.dev/toxiproxy-binary' },
  'gateway-api': { path: 'sigs.k8s.io/gateway-api', name: 'rollcall.dev/gateway-api-crds' },
  'cert-manager': { path: 'github.com/cert-manager/cert-manager', name: 'rollcall.dev/cert-manager-crds' },
  'prometheus-operator': {
    path: 'github.com/prometheus-operator/prometheus-operator',
    name: 'rollcall.dev/prometheus-operator-crds',
  },
} as const;

export type ModuleName = keyof typeof MODULES;

/** The package of a program whose source is in the module's own folder. */
const OWN = '.';

/** Each binary with the module that holds it and the package that `go build` is given. */
export const BINARIES = {
  etcd: { module: 'etcd', package: 'go.etcd.io/etcd/server/v3' },
  'kube-apiserver': { module: 'kubernetes', package: 'k8s.io/kubernetes/cmd/kube-apiserver' },
  'kube-controller-manager': { module: 'kubernetes', package: 'k8s.io/kubernetes/cmd/kube-controller-manager' },
  'kube-scheduler': { module: 'kubernetes', package: 'k8s.io/kubernetes/cmd/kube-scheduler' },
  kubectl: { module: 'kubernetes', package: 'k8s.io/kubernetes/cmd/kubectl' },
  kubelet: { module: 'kubernetes', package: 'k8s.io/kubernetes/cmd/kubelet' },
  'kube-proxy': { module: 'kubernetes', package: 'k8s.io/kubernetes/cmd/kube-proxy' },
  kwok: { module: 'kwok', package: 'sigs.k8s.io/kwok/cmd/kwok' },
  coredns: { module: 'coredns', package: OWN },
  pause: { module: 'pause', package: OWN },
  helm: { module: 'helm', package: 'helm.sh/helm/v4/cmd/helm' },
  mailpit: { module: 'mailpit', package: 'github.com/axllent/mailpit' },
  toxiproxy: { module: 'toxiproxy', package: 'github.com/Shopify/toxiproxy/v2/cmd/server' },
} as const satisfies Record<string, { module: ModuleName; package: string }>;

export type BinaryName = keyof typeof BINARIES;

/** `local/kubernetes/`: `versions.json` and a folder with `go.mod` and `go.sum` per module. */
export const MODULES_DIRECTORY = join(import.meta.dirname, '..', 'kubernetes');

/** Version numbers without a leading `v`. */
export type Versions = Readonly<Record<ModuleName, string>>;

/** The content of `local/kubernetes/versions.json`, the one file where the versions are chosen. */
export const versions: Versions = chosen;

/**
 * The packages of a module that are built, in the order of BINARIES; none of one that is there for
 * files or imports.
 */
export function packagesOf(module: ModuleName): string[] {
  return Object.values(BINARIES).flatMap((binary) =>
    binary.module === module && binary.package !== OWN ? [binary.package] : [],
  );
}

/**
 * The version under which Kubernetes publishes its staging modules (k8s.io/api, ...): 1.36.3 ->
 * 0.36.3. Kubernetes' own go.mod names them v0.0.0, which exists nowhere; whoever imports it has to
 * replace each.
 */
export function stagingVersion(kubernetes: string): string {
  return kubernetes.replace(/^1\./, '0.');
}

/**
 * Linker flags: no symbol tables, and for Kubernetes the version that its binaries report and
 * compare.
 */
export function linkerFlags(module: ModuleName): string {
  if (module !== 'kubernetes') return '-s -w';
  const [major = '', minor = ''] = versions.kubernetes.split('.');
  const version = { gitVersion: `v${versions.kubernetes}`, gitMajor: major, gitMinor: minor, gitTreeState: 'clean' };
  const set = Object.entries(version).map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`);
  return ['-s', '-w', ...set, `-X k8s.io/client-go/pkg/version.gitVersion=v${versions.kubernetes}`].join(' ');
}

export interface BuildInputs {
  readonly goMod: string;
  readonly goSum: string;
  readonly linkerFlags: string;
  /** Of a program of our own, the content of its source files. */
  readonly sources?: readonly string[];
  /** Operating system and architecture: a home directory may be shared by unlike machines. */
  readonly platform: string;
}

/** Names the cache directory of a build: whatever changes the binaries changes the name. */
export function cacheKey(inputs: BuildInputs): string {
  const hash = createHash('sha256');
  for (const part of [inputs.goMod, inputs.goSum, inputs.linkerFlags, inputs.platform, ...(inputs.sources ?? [])]) {
    hash.update(`${part.length}:`).update(part);
  }
  return hash.digest('hex').slice(0, 16);
}
