import type { AnalysisCheck, DeliveryJob, DeliveryPolicySpec, DeliveryStrategy } from '@rollcall/crds/types.gen.ts';
import type {
  Deployment,
  DeploymentStrategy,
  HttpRoute,
  PodTemplate,
  Service,
} from '@rollcall/platform/kube/builtin-kinds.ts';

/**
 * All that a decision about one delivery job rests on; see docs/internals.md, "Deliver". Jobs that
 * have ended are decided on too, until they have lost the finalizer `rollcall.dev/delivery`.
 */
export interface JobSnapshot {
  readonly job: DeliveryJob;
  /**
   * Of the service, else of all services, else the defaults of the custom resource. A job that has
   * saved one keeps to that.
   */
  readonly policy: SettledPolicy;
  readonly queue: QueueView;
  readonly workload: WorkloadView;
  /**
   * What `readSavedState` makes of the job's ControllerRevision; undefined before the job, by its
   * uid, has saved anything.
   */
  readonly saved: SavedState | undefined;
  readonly artifact: ArtifactSettings;
  /**
   * Measurements that were completed since the last observation and are not in `status.analysis`
   * yet.
   */
  readonly measurements: readonly Measurement[];
  readonly registrations: readonly RegistrationView[];
  /** Absent where the API server makes what the job asks for. */
  readonly refusal?: Refusal | undefined;
  readonly now: Date;
}

/** A policy in which nothing is left to the Deployment any more. */
export interface SettledPolicy extends DeliveryPolicySpec {
  readonly rolling: Required<DeliveryPolicySpec['rolling']>;
}

/**
 * Of the changes that the job asked for last, one that the API server, or who reviews for it, has
 * not made.
 */
export interface Refusal {
  /** Which change, and what the API server answered. */
  readonly message: string;
  /** Whether it rejects the object itself: trying again mends nothing. */
  readonly isInvalid: boolean;
}

/** The other unfinished jobs of the same service. */
export interface QueueView {
  /**
   * The job that runs or is before this one; undefined when it is this one's turn. Of a job that
   * has ended: one that runs by now.
   */
  readonly ahead: DeliveryJob | undefined;
  /** How many are before it. */
  readonly before: number;
  /** A later job that makes this one pointless while it waits, or has it undone while it runs. */
  readonly supersededBy: DeliveryJob | undefined;
}

/**
 * What the label `rollcall.dev/service` leads to; once the job has a `status.workload`, what that
 * leads to, whatever the labels are by now.
 */
export type WorkloadView =
  | { readonly found: 'none' }
  /** Only in namespaces that this operator must not deliver to. */
  | { readonly found: 'forbidden'; readonly namespace: string }
  /** `namespace/name` of each. */
  | { readonly found: 'many'; readonly names: readonly string[] }
  /**
   * The Deployment of `status.workload` is no longer there, or another one by its uid; the rest may
   * be.
   */
  | { readonly found: 'gone'; readonly surroundings: Surroundings }
  | { readonly found: 'one'; readonly cluster: ClusterView };

/** What the job changes or makes beside the Deployment. */
export interface Surroundings {
  /**
   * Made by this job, which its label says; undefined while there is none. `pods`: of the
   * ReplicaSet of its template.
   */
  readonly extra: { readonly deployment: Deployment; readonly pods: PodGroup | undefined } | undefined;
  /**
   * Services in the Deployment's namespace whose selector, without our pin, matches the labels of
   * its pod template, and Services that the job has saved. Services that this job made are not
   * among them.
   */
  readonly services: readonly Service[];
  /**
   * The Services that this job made for a canary behind a Gateway, by the name of the Service they
   * stand beside.
   */
  readonly extraServices: ReadonlyMap<string, Service>;
  /**
   * HTTPRoutes in the Deployment's namespace with a backend among `services`, and routes that the
   * job has saved; undefined where nobody asked or the API has no such kind.
   */
  readonly routes: readonly HttpRoute[] | undefined;
  /**
   * Of `services` and `extraServices`, while a stage waits for what proxies and gateways go by;
   * undefined where nobody asked.
   */
  readonly endpoints: EndpointsAnswer | undefined;
}

/** `unknown`: the API server did not answer. */
export type EndpointsAnswer = ServiceEndpoints | 'forbidden' | 'unknown';

/**
 * The names of the pods that are ready behind each Service, by its name, as its EndpointSlices say.
 */
export type ServiceEndpoints = ReadonlyMap<string, ReadonlySet<string>>;

/** What there is around the one Deployment of the service. */
export interface ClusterView extends Surroundings, Obstacles {
  /** The user's. */
  readonly deployment: Deployment;
  /** `templateFingerprint` of its pod template as it is now. */
  readonly fingerprint: string;
  /** Every ReplicaSet of it that has pods, or is of the current or the stable revision. */
  readonly replicaSets: readonly PodGroup[];
}

/** What may keep a job from beginning; empty once it has begun. */
export interface Obstacles {
  /**
   * Of the names that this job would give to what it makes (`extraDeploymentNames` and, for each of
   * `services`, `canaryServiceName`), the ones that something else has: `Deployment shop-green`.
   */
  readonly taken: readonly string[];
  /** What has these names, but is of a job that has ended, and without pods. */
  readonly leftovers: readonly (Deployment | Service)[];
  /**
   * Those of `services` that the job is to pin and that select a pod of others too, with the name
   * of that pod.
   */
  readonly shared: readonly { readonly service: string; readonly pod: string }[];
  /** The claim of another job on the Deployment, see `claim.ts`, that this job may replace. */
  readonly abandonedClaim: string | undefined;
}

/** The pods of one ReplicaSet. */
export interface PodGroup {
  /** `pod-template-hash`. */
  readonly hash: string;
  /** `deployment.kubernetes.io/revision` of the ReplicaSet. */
  readonly revision: number;
  /** Whether the Deployment is rolling out, or has rolled out, this one. */
  readonly current: boolean;
  /** Pods that are neither being deleted nor finished. */
  readonly pods: readonly PodView[];
}

export interface PodView {
  readonly name: string;
  readonly ready: boolean;
  /** Of all of its containers together. */
  readonly restarts: number;
  /**
   * Of one that is not ready: whether it is coming up, as it has never been ready and no container
   * of it has ended.
   */
  readonly isComingUp?: boolean;
  /** Why it cannot run, where that will not mend itself; see `observe/pod-faults.ts`. */
  readonly fault: PodFault | undefined;
  /** What a pod that is not ready waits for. */
  readonly waits?: PodWait;
}

export interface PodWait {
  /** With the name of the pod. */
  readonly message: string;
  /** Whether every pod waits for that when it comes up, if not for long. */
  readonly isUsual: boolean;
  /** Whether it fits on no node. */
  readonly isUnscheduled?: boolean;
}

export interface PodFault {
  readonly reason: 'ImagePullFailed' | 'CrashLoop' | 'ContainerConfigInvalid' | 'ArtifactFetchFailed';
  readonly message: string;
}

/**
 * How everything was before the job touched it, and what it is to become: the data of a
 * ControllerRevision that is named like the job. It is written before anything is changed, and is
 * all that undoing needs.
 */
export interface SavedState {
  readonly deployment: {
    readonly template: PodTemplate;
    readonly strategy: DeploymentStrategy;
    readonly progressDeadlineSeconds: number;
    /** `rollcall.dev/version`; null when there was none. */
    readonly version: string | null;
    /** `rollcall.dev/version-of`; null when there was none. */
    readonly versionOf: string | null;
    /**
     * How many of its pods were ready where not all were, and how many could not run: more need not
     * be ready after a rollback.
     */
    readonly short?: { readonly ready: number; readonly missing: number } | undefined;
  };
  readonly services: readonly { readonly name: string; readonly selector: Readonly<Record<string, string>> }[];
  /** `spec.rules` of each HTTPRoute that gets weights. */
  readonly routes: readonly { readonly name: string; readonly rules: NonNullable<HttpRoute['spec']['rules']> }[];
  /** The pod template of the new version. */
  readonly target: PodTemplate;
  /**
   * How the job goes about it: as it was asked to, or Rolling where there is nothing to move or to
   * protect.
   */
  readonly strategy: DeliveryStrategy;
  /** What the job does otherwise than it, or its policy, was asked to. */
  readonly departure?: Departure | undefined;
  /** As it was when the job began: what a job does never depends on when its policy was edited. */
  readonly policy: SettledPolicy;
}

/** Something else than was asked for, since that cannot be done or makes no sense. */
export interface Departure {
  readonly reason:
    | 'NothingToMove'
    | 'WorkloadNotReady'
    | 'GatewayAPIMissing'
    | 'NoMatchingRoute'
    | 'NoService'
    | 'SurgeLimited';
  /** What instead of what and why, without a full stop: it goes into brackets too. */
  readonly message: string;
}

/** How this operator puts binaries into pods. */
export interface ArtifactSettings {
  /** The image with `rollcall fetch`; undefined: binaries cannot be delivered. */
  readonly fetcherImage: string | undefined;
  readonly maxBytes: number;
  /** Whether binaries may come from loopback, private and link-local addresses. */
  readonly allowPrivateAddresses: boolean;
}

/** One measurement of one check. */
export interface Measurement {
  readonly check: string;
  readonly passed: boolean;
  readonly at: Date;
  /** Without credentials. */
  readonly message: string;
}

/** What the registry knows of an instance of the service, for `requireHeartbeat`. */
export interface RegistrationView {
  /**
   * When the last heartbeat was seen, by the clock of who wrote it; undefined without a live
   * registration.
   */
  readonly heartbeatAt: Date | undefined;
  readonly currentVersion: string | undefined;
  readonly health:
    | { readonly status: string; readonly reportedAt: Date; readonly version: string | undefined }
    | undefined;
}

/** A measurement that is to be made; `observe` has it made when it is due. */
export interface DueCheck {
  readonly check: AnalysisCheck;
  /** Monotonic deadlines would not survive a change of leader, so this is by the wall clock. */
  readonly dueAt: Date;
}
