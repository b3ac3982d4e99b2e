import type { ObjectMeta } from '@rollcall/crds/object-meta.ts';
import type { ResourceKind } from '@rollcall/crds/resource-kind.ts';

/** A Kubernetes Lease as it is on the wire; `renewTime` is RFC 3339 with microseconds. */
export interface Lease {
  readonly apiVersion: 'coordination.k8s.io/v1';
  readonly kind: 'Lease';
  readonly metadata: ObjectMeta;
  readonly spec?: {
    readonly holderIdentity?: string | null;
    readonly leaseDurationSeconds?: number;
    readonly acquireTime?: string;
    readonly renewTime?: string;
    readonly leaseTransitions?: number;
  };
}

export interface Service {
  readonly apiVersion: 'v1';
  readonly kind: 'Service';
  readonly metadata: ObjectMeta;
  readonly spec?: {
    readonly ports?: readonly { readonly name?: string; readonly port: number; readonly appProtocol?: string }[];
  };
}

export interface EndpointSlice {
  readonly apiVersion: 'discovery.k8s.io/v1';
  readonly kind: 'EndpointSlice';
  readonly metadata: ObjectMeta;
  readonly addressType: string;
  readonly endpoints?: readonly {
    readonly addresses: readonly string[];
    readonly conditions?: { readonly ready?: boolean };
  }[];
}

export interface Secret {
  readonly apiVersion: 'v1';
  readonly kind: 'Secret';
  readonly metadata: ObjectMeta;
  readonly type?: string;
  readonly data?: Readonly<Record<string, string>>;
}

/** A core/v1 Event: what `kubectl describe` lists. */
export interface KubeEvent {
  readonly apiVersion: 'v1';
  readonly kind: 'Event';
  readonly metadata: ObjectMeta;
  readonly involvedObject: {
    readonly apiVersion: string;
    readonly kind: string;
    readonly name: string;
    readonly namespace?: string;
    readonly uid?: string;
  };
  readonly reason: string;
  readonly message: string;
  readonly type: 'Normal' | 'Warning';
  readonly source: { readonly component: string; readonly host?: string };
  readonly firstTimestamp: string;
  readonly lastTimestamp: string;
  readonly count: number;
}

export interface TokenReview {
  readonly apiVersion: 'authentication.k8s.io/v1';
  readonly kind: 'TokenReview';
  readonly metadata: ObjectMeta;
  readonly spec: { readonly token: string; readonly audiences?: readonly string[] };
  readonly status?: {
    readonly authenticated?: boolean;
    readonly error?: string;
    readonly audiences?: readonly string[];
    readonly user?: { readonly username?: string; readonly uid?: string; readonly groups?: readonly string[] };
  };
}

export const leaseKind: ResourceKind<Lease> = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  plural: 'leases',
  namespaced: true,
};

export const serviceKind: ResourceKind<Service> = {
  apiVersion: 'v1',
  kind: 'Service',
  plural: 'services',
  namespaced: true,
};

export const endpointSliceKind: ResourceKind<EndpointSlice> = {
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  plural: 'endpointslices',
  namespaced: true,
};

export const secretKind: ResourceKind<Secret> = {
  apiVersion: 'v1',
  kind: 'Secret',
  plural: 'secrets',
  namespaced: true,
};

export const eventKind: ResourceKind<KubeEvent> = {
  apiVersion: 'v1',
  kind: 'Event',
  plural: 'events',
  namespaced: true,
};

export const tokenReviewKind: ResourceKind<TokenReview> = {
  apiVersion: 'authentication.k8s.io/v1',
  kind: 'TokenReview',
  plural: 'tokenreviews',
  namespaced: false,
};
