import { type CallOptions, get, json, post, query, serviceSegment, signed, type WebhookOptions } from './api-call.ts';
import { jobCalls } from './job-calls.ts';
import type {
  AcceptedJob,
  CompositionStatus,
  Confirmation,
  DeployRequest,
  HealthStatus,
  HeartbeatAnswer,
  InstanceList,
  InstanceRecord,
  LifecycleEvent,
  RegisteredService,
  RegisterRequest,
  RemovedService,
  RollbackRequest,
  ServiceFilter,
  ServiceList,
  ServiceRecord,
  ServiceUpdateHistory,
  UpdateHistory,
  UpdateStatistics,
} from './registry-types.ts';
import { type ConnectionOptions, createTransport, type Transport } from './transport.ts';

/** @public */
export interface InstanceOptions extends CallOptions {
  /** As at its registration; absent: the one that registered without an id. */
  readonly instanceId?: string | undefined;
}

/** @public */
export interface HistoryOptions extends CallOptions {
  /** Largest number of entries. */
  readonly limit?: number | undefined;
}

/**
 * The calls of the registry API that services and their pipelines make. Results are the API's JSON
 * as it is.
 *
 * Every method rejects with a {@link RegistryError}: with `status`, `error` and `message` where the
 * registry refused, without `status` where none answered. With several servers, calls that may be
 * repeated are tried on the next one when one does not answer or says that it is unavailable.
 */
export type RegistryClient = ReturnType<typeof createRegistryClient>;

/** @throws TypeError where a server's URL is unusable. */
export function createRegistryClient(options: ConnectionOptions) {
  const transport = createTransport(options);
  return {
    ...serviceCalls(transport),
    ...updateCalls(transport),
    ...webhookCalls(transport),
    ...jobCalls(transport),
  };
}

function serviceCalls(transport: Transport) {
  return {
    /**
     * `POST /services/register`. A name that is live keeps its `service_id` and gets the new facts.
     */
    register: (body: RegisterRequest, { signal }: CallOptions = {}): Promise<RegisteredService> =>
      json(transport, { ...post('/services/register', body), repeatable: true, signal }),

    /** `GET /services`. */
    listServices: (filter: ServiceFilter = {}, { signal }: CallOptions = {}): Promise<ServiceList> =>
      json(transport, get(`/services${filterQuery(filter)}`, signal)),

    /** `GET /services/{service_name}`. Status 404: not registered, or expired. */
    getService: async (name: string, { signal }: CallOptions = {}): Promise<ServiceRecord> =>
      json(transport, get(`/services/${serviceSegment(name)}`, signal)),

    /** `GET /services/{service_name}/instances`. Status 404: none is registered. */
    listInstances: async (name: string, { signal }: CallOptions = {}): Promise<InstanceList> =>
      json(transport, get(`/services/${serviceSegment(name)}/instances`, signal)),

    /** `GET /services/{service_name}/instances/{instance_id}`. Status 404: not registered, or expired. */
    getInstance: async (name: string, instanceId: string, { signal }: CallOptions = {}): Promise<InstanceRecord> =>
      json(transport, get(`/services/${serviceSegment(name)}/instances/${serviceSegment(instanceId)}`, signal)),

    /** `DELETE /services/{service_name}`. Other instances of it stay. */
    unregister: async (name: string, { instanceId, signal }: InstanceOptions = {}): Promise<RemovedService> => {
      const path = `/services/${serviceSegment(name)}${query({ instance_id: instanceId })}`;
      return json(transport, { method: 'DELETE', path, repeatable: true, signal });
    },

    /**
     * `POST /services/{service_name}/heartbeat`. Status 400: not registered, or expired; register
     * again.
     */
    heartbeat: async (name: string, { instanceId, signal }: InstanceOptions = {}): Promise<HeartbeatAnswer> =>
      json(transport, {
        method: 'POST',
        path: `/services/${serviceSegment(name)}/heartbeat${query({ instance_id: instanceId })}`,
        repeatable: true,
        signal,
      }),

    /** `POST /services/{service_name}/composition`, for federation alone. */
    reportComposition: async (
      name: string,
      body: CompositionStatus,
      { signal }: CallOptions = {},
    ): Promise<Confirmation> =>
      json(transport, { ...post(`/services/${serviceSegment(name)}/composition`, body), repeatable: true, signal }),
  };
}

function filterQuery({ capability, prefix, zone, healthy, metadata = {}, limit, cursor }: ServiceFilter): string {
  const wanted = Object.entries(metadata).map(([key, value]) => [`metadata.${key}`, value] as const);
  const health = healthy === undefined ? undefined : String(healthy);
  return query({ capability, prefix, zone, healthy: health, limit, cursor, ...Object.fromEntries(wanted) });
}

function updateCalls(transport: Transport) {
  return {
    /** `GET /updates/history/{service_name}`. */
    serviceHistory: async (name: string, { limit, signal }: HistoryOptions = {}): Promise<ServiceUpdateHistory> =>
      json(transport, get(`/updates/history/${serviceSegment(name)}${query({ limit })}`, signal)),

    /** `GET /updates/history`. */
    history: ({ limit, signal }: HistoryOptions = {}): Promise<UpdateHistory> =>
      json(transport, get(`/updates/history${query({ limit })}`, signal)),

    /** `GET /updates/statistics`. */
    statistics: ({ signal }: CallOptions = {}): Promise<UpdateStatistics> =>
      json(transport, get('/updates/statistics', signal)),
  };
}

function webhookCalls(transport: Transport) {
  const send = async <Answer extends object>(path: string, body: unknown, options: WebhookOptions): Promise<Answer> =>
    json(transport, signed(post(path, body), options));
  return {
    /** `POST /webhooks/health`. */
    reportHealth: (body: HealthStatus, { signal }: CallOptions = {}): Promise<Confirmation> =>
      json(transport, { ...post('/webhooks/health', body), repeatable: true, signal }),

    /** `POST /webhooks/lifecycle`. */
    reportLifecycle: (body: LifecycleEvent, { signal }: CallOptions = {}): Promise<Confirmation> =>
      json(transport, { ...post('/webhooks/lifecycle', body), repeatable: true, signal }),

    /** `POST /webhooks/deploy`. */
    deploy: (body: DeployRequest, options: WebhookOptions = {}): Promise<AcceptedJob> =>
      send('/webhooks/deploy', body, options),

    /** `POST /webhooks/rollback`. */
    rollBack: (body: RollbackRequest, options: WebhookOptions = {}): Promise<AcceptedJob> =>
      send('/webhooks/rollback', body, options),
  };
}
