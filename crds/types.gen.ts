// Generated from crds/*.yaml by tools/crd-types.ts (npm run generate). Do not edit.
//
// The types say what the API server returns: a field of spec with a default is always there.
// Instants are RFC 3339 strings. A writer leaves status out: the API server ignores it but on the
// status subresource.
import type { ObjectMeta } from './object-meta.ts';

/**
 * Decides the client's rate limit: Premium, Standard or Free.
 */
export type ClientTier = 'Premium' | 'Standard' | 'Free';

/**
 * The Secret in the same namespace that holds the secret the client authenticates with, or the scrypt hash of it
 * ($scrypt$ln=14,r=8,p=5$<salt>$<hash>, with this cost, 16 bytes of salt and 32 of hash: others are refused). It
 * must be labelled rollcall.dev/api-client=true: no other Secret is read.
 */
export interface SecretReference {
  /**
   * The name of the Secret.
   */
  name: string;
  /**
   * The key in the Secret whose value is meant.
   */
  key: string;
}

/**
 * Who the client is and what it may do.
 */
export interface ApiClientSpec {
  /**
   * The name the client authenticates with and the subject of its tokens, 1 to 128 letters, digits and '-', '.',
   * '_', '~', beginning with a letter or digit. Immutable.
   */
  clientId: string;
  /**
   * Decides the client's rate limit: Premium, Standard or Free.
   */
  tier: ClientTier;
  /**
   * What the client's tokens may be used for (RFC 6749, section 3.3), each at most once. A token carries the
   * scopes it was asked for, all of them where it was asked for none.
   *
   * Items: A scope, 1 to 128 printable ASCII characters without space, '"' and '\'.
   */
  scopes: string[];
  /**
   * The Secret in the same namespace that holds the secret the client authenticates with, or the scrypt hash of it
   * ($scrypt$ln=14,r=8,p=5$<salt>$<hash>, with this cost, 16 bytes of salt and 32 of hash: others are refused). It
   * must be labelled rollcall.dev/api-client=true: no other Secret is read.
   */
  secretRef: SecretReference;
}

/**
 * Whether it holds.
 */
export type ConditionStatus = 'True' | 'False' | 'Unknown';

/**
 * One observation of an object's state (meta/v1 Condition).
 */
export interface Condition {
  /**
   * The aspect that was observed, in CamelCase.
   */
  type: string;
  /**
   * Whether it holds.
   */
  status: ConditionStatus;
  /**
   * The metadata.generation that the condition was computed from.
   */
  observedGeneration?: number;
  /**
   * When the status last changed.
   */
  lastTransitionTime: string;
  /**
   * Why, as one CamelCase word for programs.
   */
  reason: string;
  /**
   * Why, as a sentence for people.
   */
  message: string;
}

/**
 * What the gateway made of the client. Never written by users.
 */
export interface ApiClientStatus {
  /**
   * The metadata.generation that this status was computed from.
   */
  observedGeneration?: number;
  /**
   * The latest observations of the object's state, one per type.
   *
   * Items: One observation of an object's state (meta/v1 Condition).
   */
  conditions?: Condition[];
}

/**
 * An ApiClient is a program that may ask the gateway for access tokens (OAuth 2 client credentials). Deleting
 * the object stops new tokens.
 */
export interface ApiClient {
  apiVersion: 'rollcall.dev/v1alpha1';
  kind: 'ApiClient';
  metadata: ObjectMeta;
  /**
   * Who the client is and what it may do.
   */
  spec: ApiClientSpec;
  /**
   * What the gateway made of the client. Never written by users.
   */
  status?: ApiClientStatus;
}

/**
 * Deploy brings a version to the service. Rollback does the same for a version that was delivered before, and
 * marks the update it undoes in the history.
 */
export type DeliveryOperation = 'Deploy' | 'Rollback';

/**
 * image (url is a reference to a container image) or binary (url is a file that an init container fetches,
 * verifies and mounts).
 */
export type ArtifactType = 'image' | 'binary';

/**
 * What is run as that version.
 */
export interface Artifact {
  /**
   * image (url is a reference to a container image) or binary (url is a file that an init container fetches,
   * verifies and mounts).
   */
  type: ArtifactType;
  /**
   * Where the artifact is. For an image a reference such as registry.example.com/shop:1.2.0, for a binary an
   * absolute https URL without credentials.
   */
  url: string;
  /**
   * The digest of the artifact as algorithm:hex, the algorithm being sha256 or sha512. Required for a binary,
   * where a mismatch fails the job before any traffic moves. Optional for an image, where it must be sha256 and
   * pins the image by digest.
   */
  checksum?: string;
}

/**
 * How traffic is moved to the new version: Rolling (the Deployment's own rolling update), BlueGreen (a full
 * second set of pods, then all traffic at once) or Canary (weight by weight). Absent, as the DeliveryPolicy of
 * the service says, else Rolling.
 */
export type DeliveryStrategy = 'Rolling' | 'BlueGreen' | 'Canary';

/**
 * What is to be delivered and how. Only abort and promote may change after creation.
 */
export interface DeliveryJobSpec {
  /**
   * The service to deliver. The operator delivers to the Deployment labelled rollcall.dev/service with this name.
   * 1 to 253 characters without ':', white space, invisible and control characters.
   */
  serviceName: string;
  /**
   * Deploy brings a version to the service. Rollback does the same for a version that was delivered before, and
   * marks the update it undoes in the history.
   */
  operation: DeliveryOperation;
  /**
   * The version that is to run when the job has succeeded, 1 to 128 characters without '/', white space and
   * control characters.
   */
  version: string;
  /**
   * What is run as that version.
   */
  artifact: Artifact;
  /**
   * How traffic is moved to the new version: Rolling (the Deployment's own rolling update), BlueGreen (a full
   * second set of pods, then all traffic at once) or Canary (weight by weight). Absent, as the DeliveryPolicy of
   * the service says, else Rolling.
   */
  strategy?: DeliveryStrategy;
  /**
   * Who asked for the job, for people to read.
   */
  requestedBy?: string;
  /**
   * For an instant way back: the job that runs is undone and waiting ones are cancelled for it, and it rolls all
   * pods at once, whatever the policy says, without its checks.
   */
  immediate?: boolean;
  /**
   * The job ends as RolledBack, with the reason NotNewer and nothing touched, unless version is newer than what
   * the Deployment runs: higher by its numbers, or another one where either has none. A version that nothing says,
   * or latest, may be newer. Jobs that autoDeploy makes say so.
   */
  onlyIfNewer?: boolean;
  /**
   * Set to true, all traffic is returned to the old version and the job ends as RolledBack. Cannot be undone.
   */
  abort: boolean;
  /**
   * Set to true, the current pause ends and the job goes on with the next step. The operator sets it back to false
   * once it has acted on it, so that each pause wants a promote of its own.
   */
  promote: boolean;
}

/**
 * Pending (waits for its turn), Progressing (the new version is brought up or gets more traffic), Paused (waits
 * for time to pass or for promote), Verifying (checks run), Promoting (the user's Deployment runs it),
 * RollingBack (traffic returns to the old version), or one of the ends Succeeded, RolledBack and Failed.
 */
export type DeliveryPhase =
  | 'Pending'
  | 'Progressing'
  | 'Paused'
  | 'Verifying'
  | 'Promoting'
  | 'Succeeded'
  | 'RollingBack'
  | 'RolledBack'
  | 'Failed';

/**
 * Every DeliveryPhase.
 */
export const deliveryPhases = [
  'Pending',
  'Progressing',
  'Paused',
  'Verifying',
  'Promoting',
  'Succeeded',
  'RollingBack',
  'RolledBack',
  'Failed',
] as const satisfies readonly DeliveryPhase[];

/**
 * What that version was run from, to return to; absent where it was a binary. Once the job has succeeded, the
 * registry keeps it as a release of oldVersion unless it knows one.
 */
export interface OldArtifact {
  /**
   * image.
   */
  type: ArtifactType;
  /**
   * The reference of the image.
   */
  url: string;
}

/**
 * The Deployment that the job delivers to.
 */
export interface WorkloadReference {
  /**
   * Its namespace.
   */
  namespace: string;
  /**
   * Its name.
   */
  name: string;
  /**
   * Its uid; another Deployment of the same name does not count as it.
   */
  uid: string;
}

/**
 * Why the job is, or was, rolled back or failed.
 */
export interface DeliveryFailure {
  /**
   * As one CamelCase word for programs.
   */
  reason: string;
  /**
   * As a sentence for people.
   */
  message: string;
}

/**
 * What one check has measured.
 */
export interface AnalysisResult {
  /**
   * The name of the check.
   */
  name: string;
  /**
   * How many measurements were made.
   */
  measurements: number;
  /**
   * How many failed, of the last one to count measurements; the count begins anew when they are complete.
   */
  failures: number;
  /**
   * When the last one was made.
   */
  lastMeasuredAt?: string;
  /**
   * What the last one came to, as a sentence for people.
   */
  message?: string;
}

/**
 * A phase that the job came to.
 */
export interface DeliveryMilestone {
  /**
   * The phase.
   */
  phase: DeliveryPhase;
  /**
   * The index of the strategy's step then, counted from 0.
   */
  step?: number;
  /**
   * The percentage of traffic that the new version was to have when the phase began.
   */
  weight?: number;
  /**
   * When the phase began.
   */
  at: string;
}

/**
 * What the operator did so far. Never written by users.
 */
export interface DeliveryJobStatus {
  /**
   * Pending (waits for its turn), Progressing (the new version is brought up or gets more traffic), Paused (waits
   * for time to pass or for promote), Verifying (checks run), Promoting (the user's Deployment runs it),
   * RollingBack (traffic returns to the old version), or one of the ends Succeeded, RolledBack and Failed.
   */
  phase: DeliveryPhase;
  /**
   * Why the job stands where it does, as one CamelCase word for programs.
   */
  reason?: string;
  /**
   * Why the job stands where it does, as a sentence for people.
   */
  message?: string;
  /**
   * How the job moves traffic: as spec.strategy or the policy says, or Rolling where there is no traffic to move,
   * for want of pods or of a difference.
   */
  strategy?: DeliveryStrategy;
  /**
   * The index of the strategy's current step, counted from 0.
   */
  step?: number;
  /**
   * The percentage of traffic that the new version is to have, by the step that the job has come to.
   */
  weight?: number;
  /**
   * The percentage of traffic that goes to the new version. Where weights are made by replicas, its share of the
   * pods that are ready, which weight is only as near to as whole pods come: of one pod, any weight is half.
   * Absent while a rolling update goes on.
   */
  actualWeight?: number;
  /**
   * The version that ran before the job.
   */
  oldVersion?: string;
  /**
   * What that version was run from, to return to; absent where it was a binary. Once the job has succeeded, the
   * registry keeps it as a release of oldVersion unless it knows one.
   */
  oldArtifact?: OldArtifact;
  /**
   * When the job left Pending.
   */
  startedAt?: string;
  /**
   * When the job reached Succeeded, RolledBack or Failed.
   */
  finishedAt?: string;
  /**
   * The state of the strategy's state machine, more exact than phase, for programs and for the next leader to
   * carry on from.
   */
  stage?: string;
  /**
   * When the current stage began; pauses, bakes and drains are timed from it.
   */
  stageStartedAt?: string;
  /**
   * The metadata.generation whose promote was acted on last.
   */
  promotedGeneration?: number;
  /**
   * The Deployment that the job delivers to.
   */
  workload?: WorkloadReference;
  /**
   * The pod-template-hash of the pods that ran before the job.
   */
  stableHash?: string;
  /**
   * A digest of the Deployment's pod template as the job last left or found it. A template that differs was
   * changed from outside.
   */
  templateFingerprint?: string;
  /**
   * How often containers of the new version have been restarted, as far as a rolling update has seen while its
   * pods have to stay ready.
   */
  restarts?: number;
  /**
   * The most pods that the extra Deployment was asked for; it never shrinks while it carries traffic.
   */
  extraReplicas?: number;
  /**
   * Why the job is, or was, rolled back or failed.
   */
  failure?: DeliveryFailure;
  /**
   * What the checks of the current verification have measured so far, one entry per check.
   *
   * Items: What one check has measured.
   */
  analysis?: AnalysisResult[];
  /**
   * What the job came to between its start and its end, in order: every phase, at every step, once. A registry
   * that did not run meanwhile reads from it what has happened.
   *
   * Items: A phase that the job came to.
   */
  milestones?: DeliveryMilestone[];
  /**
   * The revision of the Deployment that ran before the job, to return to.
   */
  previousRevision?: number;
  /**
   * The metadata.generation that this status was computed from.
   */
  observedGeneration?: number;
  /**
   * The latest observations of the object's state, one per type.
   *
   * Items: One observation of an object's state (meta/v1 Condition).
   */
  conditions?: Condition[];
}

/**
 * A DeliveryJob brings one version of one service to its Deployment, once. Jobs for the same service run one at
 * a time, in order of creation. The registry makes one for each accepted deploy or rollback call; its name is
 * the job id where that is a legal object name.
 */
export interface DeliveryJob {
  apiVersion: 'rollcall.dev/v1alpha1';
  kind: 'DeliveryJob';
  metadata: ObjectMeta;
  /**
   * What is to be delivered and how. Only abort and promote may change after creation.
   */
  spec: DeliveryJobSpec;
  /**
   * What the operator did so far. Never written by users.
   */
  status?: DeliveryJobStatus;
}

/**
 * How the strategy Rolling works.
 */
export interface RollingPolicy {
  /**
   * How many pods may run above the number the Deployment asks for, as a number or as a percentage of it such as
   * 25%. Absent, what the Deployment says.
   */
  maxSurge?: number | string;
  /**
   * How many pods may be missing from the number the Deployment asks for, as a number or as a percentage of it. 0
   * keeps the service at full strength throughout. Absent, what the Deployment says.
   */
  maxUnavailable?: number | string;
  /**
   * Seconds without progress of a rollout after which the job is rolled back. Every strategy's rollouts are held
   * to it. Absent, what the Deployment says, at most a day.
   */
  progressDeadlineSeconds?: number;
  /**
   * Seconds that all pods of a version that was rolled out must stay ready, without a restart, before the job
   * finishes. They begin anew whenever one does not. 0 finishes the job as soon as all pods are available, for
   * which the Deployment's minReadySeconds counts.
   */
  bakeSeconds: number;
}

/**
 * A request that pods of the new version must answer before they receive any traffic. Absent, readiness alone
 * counts.
 */
export interface HttpProbe {
  /**
   * The path to request, with a query where needed.
   */
  path: string;
  /**
   * The port of the pod, 1 to 65535.
   */
  port: number;
  /**
   * How the pod is spoken to: HTTP or HTTPS, whose certificate is not verified.
   */
  scheme: 'HTTP' | 'HTTPS';
  /**
   * The status codes that pass. Absent, 200 to 399.
   *
   * Items: A status code that passes.
   */
  expectedStatuses?: number[];
  /**
   * Text that the first 64 KiB of the answer's body must contain.
   */
  bodyContains?: string;
  /**
   * The longest that the whole answer may last, in milliseconds. Absent, the timeout alone counts.
   */
  maxLatencyMilliseconds?: number;
  /**
   * Seconds to wait for the answer.
   */
  timeoutSeconds: number;
}

/**
 * How the strategy BlueGreen works.
 */
export interface BlueGreenPolicy {
  /**
   * A request that pods of the new version must answer before they receive any traffic. Absent, readiness alone
   * counts.
   */
  smokeTest?: HttpProbe;
  /**
   * Seconds that the new version must hold all traffic before the job finishes.
   */
  bakeSeconds: number;
  /**
   * Whether traffic is cut over as soon as the new version is ready and tested. False pauses the job until its
   * promote is set.
   */
  autoPromote: boolean;
}

/**
 * One weight on the way.
 */
export interface CanaryStep {
  /**
   * The percentage of traffic that the new version gets, 0 to 100.
   */
  weight: number;
  /**
   * Seconds to stay at this weight before the next step. 0 goes on as soon as the checks have passed; absent, the
   * job stays Paused until its promote is set.
   */
  pauseSeconds?: number;
}

/**
 * What makes the weights: Replicas (the share of pods, so weights are as fine as the number of pods allows) or
 * GatewayAPI (the weights of an HTTPRoute that points at the Service, exact).
 */
export type TrafficRouter = 'Replicas' | 'GatewayAPI';

/**
 * How the strategy Canary works.
 */
export interface CanaryPolicy {
  /**
   * How many pods the canary may add to those the Deployment asks for, as a number or as a percentage of it,
   * rounded up. Steps that need more get less of the traffic, and the Deployment's own pods are replaced behind as
   * many. Absent, as many as the weights need, and as many as the Deployment asks for in the end.
   */
  maxSurge?: number | string;
  /**
   * The weights the new version gets on its way to all traffic, in order. The checks of analysis must pass at
   * each.
   *
   * Items: One weight on the way.
   */
  steps: CanaryStep[];
  /**
   * What makes the weights: Replicas (the share of pods, so weights are as fine as the number of pods allows) or
   * GatewayAPI (the weights of an HTTPRoute that points at the Service, exact).
   */
  trafficRouter: TrafficRouter;
}

/**
 * The bounds within which the result passes, both inclusive; at least one is set.
 */
export interface Threshold {
  /**
   * The smallest result that passes.
   */
  min?: number;
  /**
   * The largest result that passes.
   */
  max?: number;
}

/**
 * A Prometheus query whose result must lie within a threshold.
 */
export interface PrometheusCheck {
  /**
   * The base URL of Prometheus, absolute, http or https, without credentials.
   */
  address: string;
  /**
   * An instant query in PromQL that yields one number.
   */
  query: string;
  /**
   * The bounds within which the result passes, both inclusive; at least one is set.
   */
  threshold: Threshold;
}

/**
 * A URL that is asked by POST, with the job as the JSON body. A 2xx answer passes, any other fails.
 */
export interface WebhookCheck {
  /**
   * The URL to ask, absolute, http or https, without credentials.
   */
  url: string;
  /**
   * Seconds to wait for the answer.
   */
  timeoutSeconds: number;
}

/**
 * One check of the new version.
 */
export interface AnalysisCheck {
  /**
   * What the check is called in messages, unique within the policy.
   */
  name: string;
  /**
   * Seconds after the start of a verification before the first measurement.
   */
  initialDelaySeconds: number;
  /**
   * Seconds between two measurements.
   */
  intervalSeconds: number;
  /**
   * How many measurements must be made.
   */
  count: number;
  /**
   * How many measurements may fail before the check fails.
   */
  failureLimit: number;
  /**
   * A Prometheus query whose result must lie within a threshold.
   */
  prometheus?: PrometheusCheck;
  /**
   * A request that each pod of the new version must answer.
   */
  http?: HttpProbe;
  /**
   * A URL that is asked by POST, with the job as the JSON body. A 2xx answer passes, any other fails.
   */
  webhook?: WebhookCheck;
}

/**
 * What happens to a job whose checks fail: RollBack (all traffic returns to the old version) or Hold (the job
 * stays Paused until someone promotes or aborts it).
 */
export type FailureAction = 'RollBack' | 'Hold';

/**
 * How jobs run.
 */
export interface DeliveryPolicySpec {
  /**
   * The service the policy is for, or '*' for all services without a policy of their own. 1 to 253 characters
   * without ':', white space, invisible and control characters. Immutable.
   */
  serviceName: string;
  /**
   * The strategy of jobs that name none: Rolling, BlueGreen or Canary.
   */
  strategy: DeliveryStrategy;
  /**
   * How the strategy Rolling works.
   */
  rolling: RollingPolicy;
  /**
   * How the strategy BlueGreen works.
   */
  blueGreen: BlueGreenPolicy;
  /**
   * How the strategy Canary works.
   */
  canary: CanaryPolicy;
  /**
   * Whether the new version must also have registered with the registry, sent a heartbeat and reported itself
   * healthy before it counts as verified.
   */
  requireHeartbeat: boolean;
  /**
   * Checks that must pass while the new version is verified. Each sets exactly one of prometheus, http and
   * webhook.
   *
   * Items: One check of the new version.
   */
  analysis?: AnalysisCheck[];
  /**
   * What happens to a job whose checks fail: RollBack (all traffic returns to the old version) or Hold (the job
   * stays Paused until someone promotes or aborts it).
   */
  onFailure: FailureAction;
  /**
   * Seconds that pods which no longer get traffic are kept, so that requests under way end and every router knows
   * of the switch.
   */
  drainSeconds: number;
  /**
   * Whether a deploy that still waits for its turn is cancelled when a later deploy of the same service is asked
   * for. Rollbacks that wait never are.
   */
  supersede: boolean;
  /**
   * Whether a version announced by an update webhook is deployed without a deploy call.
   */
  autoDeploy: boolean;
  /**
   * Whether autoDeploy also deploys pre-releases, such as 2.0.0-rc.1.
   */
  preReleases: boolean;
}

/**
 * What the operator made of the policy. Never written by users.
 */
export interface DeliveryPolicyStatus {
  /**
   * The metadata.generation that this status was computed from.
   */
  observedGeneration?: number;
  /**
   * The latest observations of the object's state, one per type.
   *
   * Items: One observation of an object's state (meta/v1 Condition).
   */
  conditions?: Condition[];
}

/**
 * A DeliveryPolicy says how DeliveryJobs of a service run. A policy for the service itself replaces one for '*',
 * which is for all services.
 */
export interface DeliveryPolicy {
  apiVersion: 'rollcall.dev/v1alpha1';
  kind: 'DeliveryPolicy';
  metadata: ObjectMeta;
  /**
   * How jobs run.
   */
  spec: DeliveryPolicySpec;
  /**
   * What the operator made of the policy. Never written by users.
   */
  status?: DeliveryPolicyStatus;
}

/**
 * A protocol that a service speaks.
 */
export type Capability = 'rest' | 'graphql' | 'grpc' | 'mcp';

/**
 * What is asked: http (GET, passed by a status from 200 to 399; redirects are not followed), tcp (a connection)
 * or grpc (the standard service grpc.health.v1.Health, passed by SERVING).
 */
export type HealthCheckType = 'http' | 'tcp' | 'grpc';

/**
 * How the operator asks the instance whether it is well. It is asked at the host and port of url.
 */
export interface HealthCheck {
  /**
   * What is asked: http (GET, passed by a status from 200 to 399; redirects are not followed), tcp (a connection)
   * or grpc (the standard service grpc.health.v1.Health, passed by SERVING).
   */
  type: HealthCheckType;
  /**
   * What is asked for by http, below the URL, such as /health; absent: the URL itself.
   */
  path?: string;
  /**
   * Whose health is asked for by grpc, such as acme.shop.v1.Shop; absent: that of the server.
   */
  service?: string;
  /**
   * How often it is asked, in seconds, 5 to 300.
   */
  intervalSeconds: number;
  /**
   * How long the whole answer may take, in seconds, 1 to 60. The next check waits for it.
   */
  timeoutSeconds: number;
  /**
   * After how many failures in a row it is Failing, 1 to 10.
   */
  failureThreshold: number;
  /**
   * After how many successes in a row one that was Failing is Passing again, 1 to 10.
   */
  successThreshold: number;
}

/**
 * Who registered the service and hence who keeps this object up to date: API (the program itself, through the
 * registry), KubernetesService (the operator, from an annotated Service) or Manifest (a user or a GitOps tool).
 */
export type RegistrationSource = 'API' | 'KubernetesService' | 'Manifest';

/**
 * What was registered. Written by the registry, by a user or by the operator, as source says.
 */
export interface ServiceRegistrationSpec {
  /**
   * The unique name the service is discovered by, 1 to 253 characters. Any character is allowed but ':', white
   * space and control characters; lower case with hyphens is recommended. Names that differ in case only are
   * different names. Immutable.
   */
  serviceName: string;
  /**
   * Which of the service's instances this is, a lower-case DNS label (RFC 1123). One of them may have none.
   * Immutable.
   */
  instanceId?: string;
  /**
   * The id of the service, of an instance that was registered while others were there; else the metadata.uid of
   * this object is. Written by the registry and the operator.
   */
  serviceId?: string;
  /**
   * The base URL where the service can be reached: absolute, http or https, with an ASCII host and without
   * credentials, query and fragment, at most 2048 characters. For example http://shop.default.svc:8080.
   */
  url: string;
  /**
   * The protocols the service speaks, each at most once: rest, graphql (it is composed into the federated schema),
   * grpc (it receives calls on the gateway's gRPC port), mcp (Model Context Protocol).
   *
   * Items: A protocol that a service speaks.
   */
  capabilities: Capability[];
  /**
   * Whatever else others may choose instances by, at most 32 entries and 4096 characters in all.
   */
  metadata?: {
    /**
     * The value of an entry.
     */
    [k: string]: string;
  };
  /**
   * Where the instance runs, such as an availability zone.
   */
  zone?: string;
  /**
   * How many requests it is to get, compared with other instances; 100 where absent.
   */
  weight?: number;
  /**
   * The path of its GraphQL API below the URL, such as /graphql.
   */
  graphqlPath?: string;
  /**
   * How the operator asks the instance whether it is well. It is asked at the host and port of url.
   */
  check?: HealthCheck;
  /**
   * Seconds without a heartbeat after which the registration expires, 5 to 86400. The registry writes 60. Absent,
   * as on an object applied by hand, means that no heartbeats are expected and that the registration never
   * expires.
   */
  ttlSeconds?: number;
  /**
   * Who registered the service and hence who keeps this object up to date: API (the program itself, through the
   * registry), KubernetesService (the operator, from an annotated Service) or Manifest (a user or a GitOps tool).
   */
  source: RegistrationSource;
}

/**
 * Registered (the service can be discovered) or Expired (its heartbeats stopped; the object is deleted after a
 * retention). Absent until the operator has seen the object, which is discoverable at once.
 */
export type RegistrationPhase = 'Registered' | 'Expired';

/**
 * The health the service last reported of itself.
 */
export interface ServiceHealth {
  /**
   * The service's own word for its state, for example healthy.
   */
  status: string;
  /**
   * When the service made the report.
   */
  reportedAt: string;
  /**
   * Whatever the service reported beside its state, for example its uptime.
   */
  details?: Record<string, unknown>;
}

/**
 * Passing, or Failing (the instance gets requests only where no other is well).
 */
export type HealthCheckState = 'Passing' | 'Failing';

/**
 * What the declared check came to, or what an EndpointSlice says of the endpoint of an imported Service; absent
 * until then.
 */
export interface HealthCheckStatus {
  /**
   * Passing, or Failing (the instance gets requests only where no other is well).
   */
  status: HealthCheckState;
  /**
   * When the status became what it is.
   */
  since: string;
  /**
   * What the check saw when the status last changed.
   */
  message: string;
}

/**
 * The last event of its life that the service announced.
 */
export interface ServiceLifecycle {
  /**
   * The service's own word for the event, for example started.
   */
  event: string;
  /**
   * When it happened.
   */
  at: string;
  /**
   * Whatever the service said beside the event, for example its process id.
   */
  details?: Record<string, unknown>;
}

/**
 * What the operator and the registry observed. Never written by users.
 */
export interface ServiceRegistrationStatus {
  /**
   * Registered (the service can be discovered) or Expired (its heartbeats stopped; the object is deleted after a
   * retention). Absent until the operator has seen the object, which is discoverable at once.
   */
  phase?: RegistrationPhase;
  /**
   * When the phase became what it is.
   */
  phaseSince?: string;
  /**
   * When the service was registered. Registering a live name again does not change it.
   */
  registeredAt?: string;
  /**
   * The version of the service that runs, from its reports or from the last delivery.
   */
  currentVersion?: string;
  /**
   * The health the service last reported of itself.
   */
  health?: ServiceHealth;
  /**
   * What the declared check came to, or what an EndpointSlice says of the endpoint of an imported Service; absent
   * until then.
   */
  check?: HealthCheckStatus;
  /**
   * The last event of its life that the service announced.
   */
  lifecycle?: ServiceLifecycle;
  /**
   * The metadata.generation that this status was computed from.
   */
  observedGeneration?: number;
  /**
   * The latest observations of the object's state, one per type.
   *
   * Items: One observation of an object's state (meta/v1 Condition).
   */
  conditions?: Condition[];
}

/**
 * A ServiceRegistration says that an instance of a service is reachable at a URL. Programs make one by calling
 * the registry's HTTP API, the operator makes one for each Kubernetes Service annotated rollcall.dev/register,
 * and anyone may apply one by hand. While it is Registered, other programs discover the service by its name.
 */
export interface ServiceRegistration {
  apiVersion: 'rollcall.dev/v1alpha1';
  kind: 'ServiceRegistration';
  metadata: ObjectMeta;
  /**
   * What was registered. Written by the registry, by a user or by the operator, as source says.
   */
  spec: ServiceRegistrationSpec;
  /**
   * What the operator and the registry observed. Never written by users.
   */
  status?: ServiceRegistrationStatus;
}

/**
 * Where notifications go.
 */
export interface WebhookConfigSpec {
  /**
   * The service the configuration is for, or '*' for channels that a service does not configure itself. 1 to 253
   * characters without ':', white space, invisible and control characters. Immutable.
   */
  serviceName: string;
  /**
   * The URL that notifications are posted to, by channel. Channels are named freely, for example slack; a name has
   * 1 to 64 characters without white space and control characters.
   */
  endpoints: {
    /**
     * An absolute http or https URL without credentials.
     */
    [k: string]: string;
  };
  /**
   * The Secret in the same namespace that calls are signed with. The registry has to be allowed to read it
   * (webhooks.secretNames of the chart), else all calls are refused. Absent, calls are neither signed nor checked.
   */
  secretRef?: SecretReference;
}

/**
 * What the registry recorded. Never written by users.
 */
export interface WebhookConfigStatus {
  /**
   * When the configuration was last set through the registry.
   */
  configuredAt?: string;
  /**
   * The metadata.generation that this status was computed from.
   */
  observedGeneration?: number;
  /**
   * The latest observations of the object's state, one per type.
   *
   * Items: One observation of an object's state (meta/v1 Condition).
   */
  conditions?: Condition[];
}

/**
 * A WebhookConfig says where notifications of a service are sent, channel by channel, and which secret signs the
 * webhook calls to and from it. The registry makes one for each accepted configuration call.
 */
export interface WebhookConfig {
  apiVersion: 'rollcall.dev/v1alpha1';
  kind: 'WebhookConfig';
  metadata: ObjectMeta;
  /**
   * Where notifications go.
   */
  spec: WebhookConfigSpec;
  /**
   * What the registry recorded. Never written by users.
   */
  status?: WebhookConfigStatus;
}
