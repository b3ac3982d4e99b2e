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
    readonly ports?: readonly {
      readonly name?: string;
      readonly port: number;
      /** TCP where absent. */
      readonly protocol?: string;
      readonly appProtocol?: string;
    }[];
    readonly selector?: Readonly<Record<string, string>>;
  };
}

export interface EndpointSlice {
  readonly apiVersion: 'discovery.k8s.io/v1';
  readonly kind: 'EndpointSlice';
  readonly metadata: ObjectMeta;
  readonly addressType: string;
  /** The API server says null where there are none. */
  readonly endpoints?:
    | readonly {
        readonly addresses: readonly string[];
        readonly conditions?: { readonly ready?: boolean; readonly terminating?: boolean };
        readonly targetRef?: { readonly kind?: string; readonly name?: string };
      }[]
    | null;
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

/** Of a pod or of the template of one; what Rollcall does not read is carried along unseen. */
export interface Container {
  readonly name: string;
  readonly image?: string;
  readonly volumeMounts?: readonly {
    readonly name: string;
    readonly mountPath: string;
    readonly subPath?: string;
    readonly readOnly?: boolean;
  }[];
  readonly [field: string]: unknown;
}

export interface PodSpec {
  readonly containers: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly volumes?: readonly { readonly name: string; readonly [field: string]: unknown }[];
  readonly [field: string]: unknown;
}

export interface PodTemplate {
  readonly metadata?: {
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec: PodSpec;
}

export interface DeploymentStrategy {
  readonly type?: 'RollingUpdate' | 'Recreate';
  readonly rollingUpdate?: { readonly maxSurge?: number | string; readonly maxUnavailable?: number | string };
}

export interface Deployment {
  readonly apiVersion: 'apps/v1';
  readonly kind: 'Deployment';
  readonly metadata: ObjectMeta;
  readonly spec: {
    readonly replicas?: number;
    readonly paused?: boolean;
    readonly selector: LabelSelector;
    readonly template: PodTemplate;
    readonly strategy?: DeploymentStrategy;
    readonly minReadySeconds?: number;
    readonly progressDeadlineSeconds?: number;
    readonly revisionHistoryLimit?: number;
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly updatedReplicas?: number;
    readonly readyReplicas?: number;
    readonly availableReplicas?: number;
    readonly unavailableReplicas?: number;
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason?: string;
      readonly message?: string;
    }[];
  };
}

interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';
    readonly values?: readonly string[];
  }[];
}

export interface ReplicaSet {
  readonly apiVersion: 'apps/v1';
  readonly kind: 'ReplicaSet';
  readonly metadata: ObjectMeta;
  readonly spec: { readonly replicas?: number; readonly template?: PodTemplate };
  readonly status?: {
    readonly replicas?: number;
    readonly readyReplicas?: number;
    readonly availableReplicas?: number;
    readonly observedGeneration?: number;
  };
}

interface ContainerStatus {
  readonly name: string;
  readonly ready?: boolean;
  readonly restartCount?: number;
  readonly state?: {
    readonly waiting?: { readonly reason?: string; readonly message?: string };
    readonly terminated?: { readonly reason?: string; readonly exitCode?: number; readonly message?: string };
  };
  readonly lastState?: {
    readonly terminated?: { readonly reason?: string; readonly exitCode?: number; readonly message?: string };
  };
}

export interface Pod {
  readonly apiVersion: 'v1';
  readonly kind: 'Pod';
  readonly metadata: ObjectMeta;
  readonly status?: {
    readonly phase?: string;
    readonly podIP?: string;
    readonly startTime?: string;
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason?: string;
      readonly message?: string;
      readonly lastTransitionTime?: string;
    }[];
    readonly containerStatuses?: readonly ContainerStatus[];
    readonly initContainerStatuses?: readonly ContainerStatus[];
  };
}

/** An immutable snapshot of anything, kept by the API server (apps/v1). */
export interface ControllerRevision {
  readonly apiVersion: 'apps/v1';
  readonly kind: 'ControllerRevision';
  readonly metadata: ObjectMeta;
  readonly revision: number;
  readonly data?: unknown;
}

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

export const deploymentKind: ResourceKind<Deployment> = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  plural: 'deployments',
  namespaced: true,
};

export const replicaSetKind: ResourceKind<ReplicaSet> = {
  apiVersion: 'apps/v1',
  kind: 'ReplicaSet',
  plural: 'replicasets',
  namespaced: true,
};

export const podKind: ResourceKind<Pod> = {
  apiVersion: 'v1',
  kind: 'Pod',
  plural: 'pods',
  namespaced: true,
};

export const controllerRevisionKind: ResourceKind<ControllerRevision> = {
  apiVersion: 'apps/v1',
  kind: 'ControllerRevision',
  plural: 'controllerrevisions',
  namespaced: true,
};

export const httpRouteKind: ResourceKind<HttpRoute> = {
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'HTTPRoute',
  plural: 'httproutes',
  namespaced: true,
};
