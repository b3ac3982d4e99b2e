import { type AllowedAddresses, allowedAddresses } from '@rollcall/platform/outbound/address-rules.ts';
import { type Environment, parseConfig } from '@rollcall/platform/process/config.ts';
import { type ProcessConfig, processConfig, processSettings } from '@rollcall/platform/process/settings.ts';
import { type Static, Type } from 'typebox';
import type { ArtifactSettings } from './delivery/job/snapshot.ts';
import type { DnsZone } from './dns/target.ts';

const schema = Type.Object({
  ...processSettings,
  ROLLCALL_IMPORT: Type.Boolean({ default: true, description: 'Whether annotated Services are registered' }),
  ROLLCALL_IMPORT_NAMESPACES: Type.String({ default: '', description: 'Separated by commas; absent: all' }),
  ROLLCALL_IMPORT_TTL_SECONDS: Type.Integer({ minimum: 1, maximum: 86_400, default: 60 }),
  ROLLCALL_RETENTION_SECONDS: Type.Integer({ minimum: 0, maximum: 30 * 86_400, default: 3600 }),
  ROLLCALL_DELIVERY_NAMESPACES: Type.String({
    default: '',
    description: "Where Deployments may be delivered to, separated by commas; absent: Rollcall's own namespace; *: all",
  }),
  ROLLCALL_FETCHER_IMAGE: Type.Optional(
    Type.String({
      minLength: 1,
      description: 'Image of the init container that fetches binaries; absent: none can be',
    }),
  ),
  ROLLCALL_FETCHER_MAX_BYTES: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER, default: 1024 ** 3 }),
  ROLLCALL_FETCHER_ALLOW_PRIVATE: Type.Boolean({
    default: false,
    description: 'Whether binaries may come from loopback, private and link-local addresses',
  }),
  ROLLCALL_SERVICE_ADDRESSES: Type.Enum(allowedAddresses, {
    default: 'cluster',
    description: 'Where health checks may ask services: on the internet, also at private addresses, or anywhere',
  }),
  ROLLCALL_CHECK_ADDRESSES: Type.Enum(allowedAddresses, {
    default: 'cluster',
    description: 'Where the checks of policies may send requests: the internet, also private addresses, or anywhere',
  }),
  ROLLCALL_DNS_NAMESPACE: Type.Optional(
    Type.String({
      pattern: '^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$',
      description: 'Where registered names become Services; absent: nowhere',
    }),
  ),
  ROLLCALL_CLUSTER_DOMAIN: Type.String({
    pattern: '^[a-z0-9]([-a-z0-9.]{0,200}[a-z0-9])?$',
    default: 'cluster.local',
    description: 'What names of Services end in',
  }),
  ROLLCALL_DNS_HOST_NAMES: Type.Enum(['services', 'any'], {
    default: 'services',
    description: 'Which host names become ExternalNames: those of Services of the cluster, or any',
  }),
  ROLLCALL_QUOTA: Type.Optional(
    Type.String({
      minLength: 1,
      description: "Name of the ResourceQuota of Rollcall's objects, to have it counted; absent: there is none",
    }),
  ),
  // No Lease of a registration can have this name: theirs have no dot, or end in 16 hexadecimal
  // digits.
  ROLLCALL_LEADER_LEASE: Type.String({ minLength: 1, default: 'operator.rollcall.dev' }),
  // The host name is no substitute: the kubelet cuts it at 63 characters.
  ROLLCALL_POD_NAME: Type.Optional(Type.String({ minLength: 1, description: 'Of the pod that the process runs in' })),
  ROLLCALL_POD_UID: Type.Optional(Type.String({ minLength: 1, description: 'Of the pod that the process runs in' })),
});

interface ImportConfig {
  /** None: Services of all namespaces. */
  readonly namespaces: readonly string[];
  /** How long a Service may be without a ready endpoint. */
  readonly ttlMs: number;
}

export interface DeliveryConfig {
  /** Where Deployments may be delivered to. */
  readonly namespaces: 'own' | 'all' | readonly string[];
  readonly artifact: ArtifactSettings;
  /** Where the checks of policies may send requests. */
  readonly checkAddresses: AllowedAddresses;
}

interface PodIdentity {
  readonly name: string;
  readonly uid: string;
}

/** Settings of the operator process. */
export interface OperatorConfig extends ProcessConfig {
  /** Undefined: Services are not imported. */
  readonly import: ImportConfig | undefined;
  readonly delivery: DeliveryConfig;
  /** Where services may be. */
  readonly serviceAddresses: AllowedAddresses;
  /** Undefined: registered names do not become Services. */
  readonly dns: DnsZone | undefined;
  /** How long an Expired registration is kept. */
  readonly retentionMs: number;
  /** Name of the ResourceQuota to have counted. */
  readonly quota: string | undefined;
  /** Name of the Lease that the replicas compete for. */
  readonly leaderLease: string;
  /** Undefined: the process is in no pod, or it is not known. */
  readonly pod: PodIdentity | undefined;
}

/** @throws ConfigError naming every faulty variable. */
export function operatorConfig(environment: Environment): OperatorConfig {
  const parsed: Static<typeof schema> = parseConfig(schema, environment);
  const importing = {
    namespaces: namesIn(parsed.ROLLCALL_IMPORT_NAMESPACES),
    ttlMs: parsed.ROLLCALL_IMPORT_TTL_SECONDS * 1000,
  };
  return {
    ...processConfig(parsed),
    import: parsed.ROLLCALL_IMPORT ? importing : undefined,
    delivery: {
      namespaces: deliveryNamespaces(namesIn(parsed.ROLLCALL_DELIVERY_NAMESPACES)),
      artifact: {
        fetcherImage: parsed.ROLLCALL_FETCHER_IMAGE,
        maxBytes: parsed.ROLLCALL_FETCHER_MAX_BYTES,
        allowPrivateAddresses: parsed.ROLLCALL_FETCHER_ALLOW_PRIVATE,
      },
      checkAddresses: parsed.ROLLCALL_CHECK_ADDRESSES,
    },
    serviceAddresses: parsed.ROLLCALL_SERVICE_ADDRESSES,
    dns: dnsZone(parsed),
    retentionMs: parsed.ROLLCALL_RETENTION_SECONDS * 1000,
    quota: parsed.ROLLCALL_QUOTA,
    leaderLease: parsed.ROLLCALL_LEADER_LEASE,
    pod: podIn(parsed),
  };
}

function podIn({ ROLLCALL_POD_NAME: name, ROLLCALL_POD_UID: uid }: Static<typeof schema>): PodIdentity | undefined {
  return name === undefined || uid === undefined ? undefined : { name, uid };
}

function dnsZone(parsed: Static<typeof schema>): DnsZone | undefined {
  const { ROLLCALL_DNS_NAMESPACE: namespace, ROLLCALL_CLUSTER_DOMAIN: clusterDomain } = parsed;
  if (namespace === undefined) return undefined;
  return { namespace, clusterDomain, hostNames: parsed.ROLLCALL_DNS_HOST_NAMES };
}

function namesIn(list: string): string[] {
  const names = list.split(',').map((name) => name.trim());
  return [...new Set(names.filter((name) => name !== ''))];
}

function deliveryNamespaces(names: readonly string[]): DeliveryConfig['namespaces'] {
  if (names.includes('*')) return 'all';
  return names.length === 0 ? 'own' : names;
}
