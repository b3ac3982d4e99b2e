import type { ArtifactType, Strategy } from './job-types.ts';

/**
 * What the registry API sends and receives (contract 1). Field names are the contract's: these
 * objects are the JSON itself.
 */

/** What a service speaks (contract 1, "Service registration"). */
export type Capability = 'rest' | 'graphql' | 'grpc' | 'mcp';

/** Every capability that the registry accepts. */
export const capabilities: readonly Capability[] = ['rest', 'graphql', 'grpc', 'mcp'];

/** One live registration, as listed, looked up and watched. Times are ISO 8601 with offset. */
export interface ServiceRecord {
  readonly service_name: string;
  readonly service_url: string;
  readonly service_id: string;
  readonly registered_at: string;
  readonly last_heartbeat: string;
  readonly capabilities: readonly Capability[];
}

/** What others may choose instances by. */
export interface InstanceFacts {
  /** At most 32 entries and 4096 bytes of JSON. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** Where it runs. */
  readonly zone?: string;
  /** How many requests it is to get, compared with other instances: from 1 to 1000, 100 by default. */
  readonly weight?: number;
  /** Of its GraphQL API, below the URL. */
  readonly graphql_path?: string;
}

/** How an instance is asked whether it is well, at the host and port of its URL. */
export interface HealthCheck {
  /**
   * `http`: GET, passed by a status from 200 to 399. `tcp`: a connection. `grpc`: the standard
   * `grpc.health.v1.Health`.
   */
  readonly type: 'http' | 'tcp' | 'grpc';
  /** Of `http`, below the URL; absent: the URL itself. */
  readonly path?: string;
  /** Of `grpc`: whose health is asked for; absent: that of the server. */
  readonly service?: string;
  /** From 5 to 300, 10 by default. */
  readonly interval_seconds?: number;
  /** Until the end of the answer, for which the next check waits: from 1 to 60, 2 by default. */
  readonly timeout_seconds?: number;
  /** After so many failures in a row it is failing: from 1 to 10, 3 by default. */
  readonly failure_threshold?: number;
  /** After so many successes in a row one that failed is passing again: from 1 to 10, 2 by default. */
  readonly success_threshold?: number;
}

/** A check, with what it has come to. */
export interface HealthCheckRecord extends HealthCheck {
  /** Absent: nothing yet. */
  readonly status?: 'passing' | 'failing';
  readonly since?: string;
  /** What was seen when the status last changed. */
  readonly message?: string;
}

/** One of the programs that are registered under a name. */
export interface InstanceRecord extends ServiceRecord, InstanceFacts {
  /** Absent: the one that registered without an id. */
  readonly instance_id?: string;
  /** Whether it gets requests before those that are not well, or are about to end. */
  readonly healthy: boolean;
  /** What it last said of its health. */
  readonly health?: string;
  readonly version?: string;
  readonly check?: HealthCheckRecord;
}

/** Answer of `GET /services/{service_name}/instances`. */
export interface InstanceList {
  readonly service_name: string;
  readonly service_id: string;
  readonly instances: readonly InstanceRecord[];
  readonly total: number;
}

/** Body of `POST /services/register`. */
export interface RegisterRequest extends InstanceFacts {
  readonly service_name: string;
  /** Which of several programs of this name: a DNS label. */
  readonly instance_id?: string;
  readonly service_url: string;
  readonly capabilities?: readonly Capability[];
  readonly check?: HealthCheck;
}

/** Answer of `POST /services/register`; `ttl` in seconds. */
export interface RegisteredService extends Omit<ServiceRecord, 'last_heartbeat'> {
  /** Absent where none was given, and from registries that know no instances. */
  readonly instance_id?: string;
  readonly ttl: number;
  /** False: a report that was made before stands, or the check fails. */
  readonly healthy?: boolean;
}

/** Answer of `GET /services`. */
export interface ServiceList {
  readonly services: readonly ServiceRecord[];
  /** Of all pages. */
  readonly total: number;
  /** Where to go on; absent: there is no more. */
  readonly next_cursor?: string;
}

/**
 * Which registrations to list: those with the capability, and whose name starts with the prefix.
 */
export interface ServiceFilter {
  readonly capability?: Capability;
  readonly prefix?: string;
  /** Of an instance. */
  readonly zone?: string;
  /** With an instance that counts as healthy. */
  readonly healthy?: boolean;
  /** Of an instance, each of these. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** Services at most, from 1 to 1000; all when neither it nor `cursor` is given. */
  readonly limit?: number;
  /** `next_cursor` of the page before. */
  readonly cursor?: string;
}

/** Answer of `POST /services/{service_name}/heartbeat`; `ttl` in seconds. */
export interface HeartbeatAnswer {
  readonly service_name: string;
  readonly message: string;
  readonly ttl: number;
}

/** Answer of `DELETE /services/{service_name}`. */
export interface RemovedService {
  readonly message: string;
  readonly service_name: string;
}

/** One update of a service, as the history of all services lists it. */
export interface UpdateEntry {
  readonly service_name: string;
  readonly old_version: string;
  readonly new_version: string;
  readonly timestamp: string;
  readonly status: 'success' | 'failed' | 'rolled_back';
  readonly duration_seconds: number;
}

/** One update of a service, as its own history lists it. */
export interface ServiceUpdateEntry extends UpdateEntry {
  readonly artifact_url: string;
  readonly checksum: string;
  readonly artifact_path: string;
  readonly backup_path: string;
}

/** Answer of `GET /updates/history`. */
export interface UpdateHistory {
  readonly history: readonly UpdateEntry[];
  readonly total: number;
}

/** Answer of `GET /updates/history/{service_name}` and of its JSON export. */
export interface ServiceUpdateHistory {
  readonly service_name: string;
  readonly history: readonly ServiceUpdateEntry[];
  readonly total: number;
}

/** Answer of `GET /updates/statistics`; `success_rate` in per cent. */
export interface UpdateStatistics {
  readonly total_updates: number;
  readonly successful_updates: number;
  readonly failed_updates: number;
  readonly rolled_back_updates: number;
  readonly success_rate: number;
  readonly average_duration_seconds: number;
  readonly services_updated: readonly { readonly service_name: string; readonly update_count: number }[];
}

/** Body of `POST /webhooks/deploy`. */
export interface DeployRequest {
  readonly service_name: string;
  readonly version: string;
  readonly artifact_url?: string;
  readonly artifact_type?: ArtifactType;
  readonly checksum?: string;
  readonly strategy?: Strategy;
}

/** Body of `POST /webhooks/rollback`; `version` is the one to return to. */
export interface RollbackRequest {
  readonly service_name: string;
  readonly version: string;
  /** Absent: as the policy of the service says. */
  readonly strategy?: Strategy;
  /** The job that runs is undone for it, waiting jobs are cancelled, and all pods roll at once. */
  readonly immediate?: boolean;
}

/** Answer of `POST /webhooks/deploy` and `/webhooks/rollback`. */
export interface AcceptedJob {
  readonly status: string;
  readonly job_id: string;
  readonly message: string;
  readonly service_name: string;
  readonly version: string;
}

/** Body of `POST /webhooks/health`. */
export interface HealthStatus {
  readonly service_name: string;
  /** As at its registration; absent: the only instance. */
  readonly instance_id?: string;
  readonly status: string;
  /** ISO 8601. */
  readonly timestamp?: string;
  /** For example `uptime` and `version`. */
  readonly details?: Readonly<Record<string, unknown>>;
}

/** Body of `POST /services/{service_name}/composition`. */
export interface CompositionStatus {
  /** How the schema of the service stands with the graph. */
  readonly status: 'composed' | 'held' | 'unreachable' | 'removed';
  /** Why, for people: at most 1024 characters, none of control. */
  readonly message: string;
}

/** Body of `POST /webhooks/lifecycle`. */
export interface LifecycleEvent {
  readonly service_name: string;
  /** As at its registration; absent: the only instance. */
  readonly instance_id?: string;
  /** For example `started`. */
  readonly event: string;
  /** ISO 8601. */
  readonly timestamp?: string;
  /** For example `version` and `pid`. */
  readonly details?: Readonly<Record<string, unknown>>;
}

/** Answer of the webhooks that only confirm: health and lifecycle. */
export interface Confirmation {
  readonly status: string;
  readonly message: string;
}
