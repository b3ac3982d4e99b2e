import type { ObjectMeta } from '@rollcall/crds/object-meta.ts';
import type { ResourceKind } from '@rollcall/crds/resource-kind.ts';

export interface Selector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
    readonly values?: readonly string[];
  }[];
}

export interface Peer {
  readonly podSelector?: Selector;
  readonly namespaceSelector?: Selector;
  readonly ipBlock?: { readonly cidr: string; readonly except?: readonly string[] };
}

export interface NetworkPolicyPort {
  /** TCP when absent. */
  readonly protocol?: string;
  /** A number, or the name of a container's port; all when absent. */
  readonly port?: number | string;
  readonly endPort?: number;
}

/** A networking.k8s.io/v1 NetworkPolicy. */
export interface NetworkPolicy {
  readonly apiVersion: 'networking.k8s.io/v1';
  readonly kind: 'NetworkPolicy';
  readonly metadata: ObjectMeta;
  readonly spec: {
    readonly podSelector: Selector;
    readonly policyTypes?: readonly ('Ingress' | 'Egress')[];
    readonly ingress?: readonly { readonly from?: readonly Peer[]; readonly ports?: readonly NetworkPolicyPort[] }[];
    readonly egress?: readonly { readonly to?: readonly Peer[]; readonly ports?: readonly NetworkPolicyPort[] }[];
  };
}

interface PolicyContainer {
  readonly restartPolicy?: string;
  readonly ports?: readonly { readonly name?: string; readonly containerPort: number; readonly protocol?: string }[];
}

/** A Pod, as far as a NetworkPolicy asks. */
export interface PolicyPod {
  readonly apiVersion: 'v1';
  readonly kind: 'Pod';
  readonly metadata: ObjectMeta;
  readonly spec: {
    readonly hostNetwork?: boolean;
    readonly containers: readonly PolicyContainer[];
    readonly initContainers?: readonly PolicyContainer[];
  };
  readonly status?: { readonly phase?: string; readonly podIP?: string };
}

export interface Namespace {
  readonly apiVersion: 'v1';
  readonly kind: 'Namespace';
  readonly metadata: ObjectMeta;
}

export const networkPolicyKind: ResourceKind<NetworkPolicy> = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  plural: 'networkpolicies',
  namespaced: true,
};

export const policyPodKind: ResourceKind<PolicyPod> = {
  apiVersion: 'v1',
  kind: 'Pod',
  plural: 'pods',
  namespaced: true,
};

export const namespaceKind: ResourceKind<Namespace> = {
  apiVersion: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  namespaced: false,
};
