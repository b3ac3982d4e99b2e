import { hash } from 'node:crypto';
import { namespacedKind } from './resource-kind.ts';
import type { ApiClient, DeliveryJob, DeliveryPolicy, ServiceRegistration, WebhookConfig } from './types.gen.ts';

/** The API group of every custom resource of Rollcall. */
export const apiGroup = 'rollcall.dev';

/** `apiVersion` of every custom resource of Rollcall. */
export const apiVersion = `${apiGroup}/v1alpha1`;

export const serviceRegistrationKind = namespacedKind<ServiceRegistration>(
  apiVersion,
  'ServiceRegistration',
  'serviceregistrations',
);
export const deliveryJobKind = namespacedKind<DeliveryJob>(apiVersion, 'DeliveryJob', 'deliveryjobs');
export const deliveryPolicyKind = namespacedKind<DeliveryPolicy>(apiVersion, 'DeliveryPolicy', 'deliverypolicies');
export const webhookConfigKind = namespacedKind<WebhookConfig>(apiVersion, 'WebhookConfig', 'webhookconfigs');
export const apiClientKind = namespacedKind<ApiClient>(apiVersion, 'ApiClient', 'apiclients');

/**
 * Whether Kubernetes accepts the text as the value of a label. Other names stand in an annotation.
 */
export function isLabelValue(text: string): boolean {
  return /^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/.test(text);
}

/** Every annotation that Rollcall reads or writes. */
export const annotations = {
  /**
   * On a Lease: by how many milliseconds the heartbeat was older than the write that carries it.
   */
  heartbeatAgeMs: 'rollcall.dev/heartbeat-age-ms',
  /** On a Kubernetes Service: `"true"` asks the operator to register it. */
  register: 'rollcall.dev/register',
  /**
   * On a registration: the subject that registered the name and alone may change it, where
   * authentication is on.
   */
  owner: 'rollcall.dev/owner',
  /**
   * On a registration: when it was last registered anew over HTTP; writing it makes an expiry under
   * way fail.
   */
  updatedAt: 'rollcall.dev/updated-at',
  /** On a DeliveryJob: its `job_id`, where that is no legal object name. */
  jobId: 'rollcall.dev/job-id',
  /** On a registration: the Kubernetes Service, as namespace/name, that it was made from. */
  importedFrom: 'rollcall.dev/imported-from',
  /**
   * On a Kubernetes Service: the name to register it by; absent, its own. On a Deployment: a
   * service name that can be no label.
   */
  serviceName: 'rollcall.dev/service-name',
  /**
   * On a Kubernetes Service: the URL to register; absent, the one of its port inside the cluster.
   */
  url: 'rollcall.dev/url',
  /**
   * On a Kubernetes Service: what is registered of it, `service` (itself, one instance) or
   * `endpoints` (each of its endpoints); absent, service.
   */
  instances: 'rollcall.dev/instances',
  /** On a Kubernetes Service: its capabilities, separated by commas; absent, rest. */
  capabilities: 'rollcall.dev/capabilities',
  /** On a Deployment: the version of the service that it runs. */
  version: 'rollcall.dev/version',
  /**
   * On a Deployment: what `rollcall.dev/version` was written for, as JSON; for anything else that
   * version does not count.
   */
  versionOf: 'rollcall.dev/version-of',
  /**
   * On a Deployment: the container whose image is the service's; absent, the one that it can only
   * be.
   */
  container: 'rollcall.dev/container',
  /** On a Deployment: where a binary is mounted in that container, an absolute path of a file. */
  binaryPath: 'rollcall.dev/binary-path',
  /**
   * On a Deployment: the Secret, in its namespace, whose token or username and password fetch the
   * binary.
   */
  artifactSecret: 'rollcall.dev/artifact-secret',
  /**
   * On a Deployment, while a DeliveryJob works on it: its claim, which is namespace, name and uid
   * of the job and the time at which it left the queue, separated by slashes; after that, the
   * generation that its write of the pod template made.
   */
  delivering: 'rollcall.dev/delivering',
  /** On what a DeliveryJob changed, while it is undone: the uid of the job. */
  rollingBack: 'rollcall.dev/rolling-back',
} as const;

/** Every label that Rollcall reads or writes. */
export const labels = {
  /** `"true"` on Leases that are the heartbeats of registrations. */
  heartbeat: 'rollcall.dev/heartbeat',
  /**
   * On a registration, and on what stands for it in DNS: the name of its service. On a Deployment:
   * that of the service that it runs. A name that is no legal label value stands in the annotation
   * `rollcall.dev/service-name` instead, and the label is `"true"`.
   */
  service: 'rollcall.dev/service',
  /** On a Deployment, Service or pod made for a DeliveryJob: the uid of the job. */
  job: 'rollcall.dev/job',
  /**
   * On a Service or EndpointSlice that the operator keeps for a registered name: the namespace of
   * the registrations.
   */
  mirroredFrom: 'rollcall.dev/mirrored-from',
  /** On a Secret: `"true"` lets the gateway read it for the ApiClient that names it. */
  apiClientSecret: 'rollcall.dev/api-client',
} as const;

/** Every finalizer that Rollcall sets. */
export const finalizers = {
  /** Holds a DeliveryJob until it has been recorded in the history. */
  history: 'rollcall.dev/history',
  /** Holds a DeliveryJob until the operator has undone or finished what it began. */
  delivery: 'rollcall.dev/delivery',
} as const;

const dnsLabel = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/;
const dnsLabelMaxLength = 63;

/** Whether the text is an RFC 1123 label, as the id of an instance has to be. */
export function isDnsLabel(text: string): boolean {
  return dnsLabel.test(text);
}

/**
 * The name of the object that stands for a service: the service name itself where that is an RFC
 * 1123 label, else `<slug>.<first 16 hex digits of the SHA-256 of the name>`. That of an instance
 * with an id has `.i.<id>` after it. A label holds no dot, so none of these ever meet.
 */
export function objectNameFor(serviceName: string, instanceId?: string): string {
  const name = isDnsLabel(serviceName)
    ? serviceName
    : `${slugOf(serviceName)}.${hash('sha256', serviceName, 'hex').slice(0, 16)}`;
  return instanceId === undefined ? name : `${name}.i.${instanceId}`;
}

function slugOf(name: string): string {
  const slug = name
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-/, '')
    .slice(0, dnsLabelMaxLength)
    .replace(/-$/, '');
  return slug === '' ? 'service' : slug;
}
