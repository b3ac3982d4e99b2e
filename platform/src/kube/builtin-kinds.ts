import type {
  CoreV1Event,
  V1Container,
  V1ContainerStatus,
  V1ControllerRevision,
  V1Deployment,
  V1DeploymentSpec,
  V1DeploymentStrategy,
  V1EndpointSlice,
  V1Lease,
  V1ObjectReference,
  V1Pod,
  V1PodSpec,
  V1PodStatus,
  V1PodTemplateSpec,
  V1ReplicaSet,
  V1ReplicaSetSpec,
  V1ResourceQuota,
  V1Secret,
  V1Service,
  V1TokenReview,
} from '@kubernetes/client-node';
import type { ObjectMeta } from '@rollcall/crds/object-meta.ts';
import { namespacedKind, type ResourceKind } from '@rollcall/crds/resource-kind.ts';

/** As it is in JSON: times are text, RFC 3339. */
type Json<T> = T extends Date
  ? string
  : T extends readonly (infer E)[]
    ? readonly Json<E>[]
    : T extends object
      ? { readonly [K in keyof T]: Json<T[K]> }
      : T;

/**
 * An object that the API server has answered with, or may be given: the library's types leave open
 * what each has.
 */
type Typed<T, Version extends string, Kind extends string> = Omit<Json<T>, 'apiVersion' | 'kind' | 'metadata'> & {
  readonly apiVersion: Version;
  readonly kind: Kind;
  readonly metadata: ObjectMeta;
};

export type Lease = Typed<V1Lease, 'coordination.k8s.io/v1', 'Lease'>;

export type Service = Typed<V1Service, 'v1', 'Service'>;

export type EndpointSlice = Omit<Typed<V1EndpointSlice, 'discovery.k8s.io/v1', 'EndpointSlice'>, 'endpoints'> & {
  /** The API server says null where there are none. */
  readonly endpoints?: Json<V1EndpointSlice['endpoints']> | null;
};

export type ResourceQuota = Typed<V1ResourceQuota, 'v1', 'ResourceQuota'>;

export type Secret = Typed<V1Secret, 'v1', 'Secret'>;

/** What `kubectl describe` lists. */
export type KubeEvent = Typed<CoreV1Event, 'v1', 'Event'> &
  Required<Pick<Json<CoreV1Event>, 'firstTimestamp'>> & {
    readonly involvedObject: Required<Pick<Json<V1ObjectReference>, 'apiVersion' | 'kind' | 'name'>>;
  };

export type Container = Json<V1Container>;

export type PodSpec = Json<V1PodSpec>;

export type PodTemplate = Omit<Json<V1PodTemplateSpec>, 'spec'> & { readonly spec: PodSpec };

export type DeploymentStrategy = Json<V1DeploymentStrategy>;

export type Deployment = Omit<Typed<V1Deployment, 'apps/v1', 'Deployment'>, 'spec'> & {
  readonly spec: Omit<Json<V1DeploymentSpec>, 'template'> & { readonly template: PodTemplate };
};

export type ReplicaSet = Omit<Typed<V1ReplicaSet, 'apps/v1', 'ReplicaSet'>, 'spec'> & {
  readonly spec: Partial<Omit<Json<V1ReplicaSetSpec>, 'template'>> & { readonly template?: PodTemplate };
};

/** But for what is not kept of it. */
export type ContainerStatus = Omit<Json<V1ContainerStatus>, 'image' | 'imageID'>;

export type Pod = Omit<Typed<V1Pod, 'v1', 'Pod'>, 'status'> & {
  readonly status?: Omit<Json<V1PodStatus>, 'containerStatuses' | 'initContainerStatuses'> & {
    readonly containerStatuses?: readonly ContainerStatus[];
    readonly initContainerStatuses?: readonly ContainerStatus[];
  };
};

/** An immutable snapshot of anything, kept by the API server. */
export type ControllerRevision = Typed<V1ControllerRevision, 'apps/v1', 'ControllerRevision'>;

export type TokenReview = Typed<V1TokenReview, 'authentication.k8s.io/v1', 'TokenReview'>;

interface BackendRef {
  readonly group?: string;
  readonly kind?: string;
  readonly name: string;
  readonly namespace?: string;
  readonly port?: number;
  readonly weight?: number;
  readonly [field: string]: unknown;
}

/** Gateway API v1. */
export interface HttpRoute {
  readonly apiVersion: 'gateway.networking.k8s.io/v1';
  readonly kind: 'HTTPRoute';
  readonly metadata: ObjectMeta;
  readonly spec: {
    readonly rules?: readonly { readonly backendRefs?: readonly BackendRef[]; readonly [field: string]: unknown }[];
    readonly [field: string]: unknown;
  };
  readonly status?: {
    /** What each gateway says of it that serves it. */
    readonly parents?: readonly { readonly conditions?: readonly RouteCondition[] }[];
  };
}

interface RouteCondition {
  readonly type: string;
  readonly status: string;
  /** Which `metadata.generation` it is about. */
  readonly observedGeneration?: number;
}

export const leaseKind = namespacedKind<Lease>('coordination.k8s.io/v1', 'Lease', 'leases');
export const serviceKind = namespacedKind<Service>('v1', 'Service', 'services');
/** On an EndpointSlice: the name of its Service. */
export const SERVICE_LABEL = 'kubernetes.io/service-name';
export const endpointSliceKind = namespacedKind<EndpointSlice>(
  'discovery.k8s.io/v1',
  'EndpointSlice',
  'endpointslices',
);
export const resourceQuotaKind = namespacedKind<ResourceQuota>('v1', 'ResourceQuota', 'resourcequotas');
export const secretKind = namespacedKind<Secret>('v1', 'Secret', 'secrets');
export const eventKind = namespacedKind<KubeEvent>('v1', 'Event', 'events');
export const tokenReviewKind: ResourceKind<TokenReview> = {
  apiVersion: 'authentication.k8s.io/v1',
  kind: 'TokenReview',
  plural: 'tokenreviews',
  namespaced: false,
};

export const deploymentKind = namespacedKind<Deployment>('apps/v1', 'Deployment', 'deployments');
export const replicaSetKind = namespacedKind<ReplicaSet>('apps/v1', 'ReplicaSet', 'replicasets');
export const podKind = namespacedKind<Pod>('v1', 'Pod', 'pods');
export const controllerRevisionKind = namespacedKind<ControllerRevision>(
  'apps/v1',
  'ControllerRevision',
  'controllerrevisions',
);
export const httpRouteKind = namespacedKind<HttpRoute>('gateway.networking.k8s.io/v1', 'HTTPRoute', 'httproutes');
