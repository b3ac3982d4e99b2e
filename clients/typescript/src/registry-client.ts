import {
  type CallOptions,
  get,
  isSuccess,
  json,
  post,
  query,
  serviceSegment,
  signed,
  type WebhookOptions,
} from './api-call.ts';
import { deliveryCalls } from './delivery-calls.ts';
import { jobCalls } from './job-calls.ts';
import { errorFromAnswer, parseObject } from './registry-error.ts';
import type {
  AcceptedJob,
  AcceptedUpdate,
  Confirmation,
  DeployRequest,
  HealthReport,
  HealthStatus,
  HeartbeatAnswer,
  LifecycleEvent,
  Notification,
  RegisteredService,
  RegisterRequest,
  RemovedService,
  RollbackRequest,
  ServiceFilter,
  ServiceList,
  ServiceRecord,
  ServiceUpdateHistory,
  UpdateCheck,
  UpdateHistory,
  UpdateNotification,
  UpdateStatistics,
  WebhookConfig,
  WebhookConfigRequest,
} from './registry-types.ts';
import { type ApiAnswer, type ConnectionOptions, createTransport, type Transport } from './transport.ts';
import { type WatchEvent, type WatchOptions, watchServices } from './watch.ts';

/** @public */
export interface HistoryOptions extends CallOptions {
  /** Largest number of entries. */
  readonly limit?: number | undefined;
}

/**
 * The registry API (contract 1, delivery jobs, and what became of notifications), a method per
 * endpoint. Results are the API's JSON as it is.
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
    ...deliveryCalls(transport),
    ...jobCalls(transport),
  };
}

function serviceCalls(transport: Transport) {
  return {
    /**
     * `GET /health`. An unhealthy registry answers 503 with a report too: that is a result, not an
     * error.
     */
    health: ({ signal }: CallOptions = {}): Promise<HealthReport> =>
      json(transport, { method: 'GET', path: '/health', repeatable: false, signal }, isHealthReport),

    /**
     * `POST /services/register`. A name that is live keeps its `service_id` and gets the new facts.
     */
    register: (body: RegisterRequest, { signal }: CallOptions = {}): Promise<RegisteredService> =>
      json(transport, { ...post('/services/register', body), repeatable: true, signal }),

    /** `GET /services`. */
    listServices: (filter: ServiceFilter = {}, { signal }: CallOptions = {}): Promise<ServiceList> =>
      json(transport, get(`/services${query({ capability: filter.capability, prefix: filter.prefix })}`, signal)),

    /** `GET /services/{service_name}`. Status 404: not registered, or expired. */
    getService: async (name: string, { signal }: CallOptions = {}): Promise<ServiceRecord> =>
      json(transport, get(`/services/${serviceSegment(name)}`, signal)),

    /** `DELETE /services/{service_name}`. */
    deregister: async (name: string, { signal }: CallOptions = {}): Promise<RemovedService> =>
      json(transport, { method: 'DELETE', path: `/services/${serviceSegment(name)}`, repeatable: true, signal }),

    /**
     * `POST /services/{service_name}/heartbeat`. Status 400: not registered, or expired; register
     * again.
     */
    heartbeat: async (name: string, { signal }: CallOptions = {}): Promise<HeartbeatAnswer> =>
      json(transport, {
        method: 'POST',
        path: `/services/${serviceSegment(name)}/heartbeat`,
        repeatable: true,
        signal,
      }),

    /** `GET /services/watch`, one connection of it; see {@link watchServices}. */
    watch: (options: WatchOptions = {}): AsyncGenerator<WatchEvent, void> => watchServices(transport, options),
  };
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

    /** `GET /updates/history/{service_name}/export/json`. */
    exportHistory: async (name: string, { limit, signal }: HistoryOptions = {}): Promise<ServiceUpdateHistory> =>
      json(transport, get(exportPath(name, 'json', limit), signal)),

    /** `GET /updates/history/{service_name}/export/csv`: the file's text. */
    async exportHistoryCsv(name: string, { limit, signal }: HistoryOptions = {}): Promise<string> {
      const headers = { accept: 'text/csv, application/json;q=0.1' };
      const answer = await transport.send({ ...get(exportPath(name, 'csv', limit), signal), headers });
      if (!isSuccess(answer)) throw errorFromAnswer(answer.status, answer.text, answer.server);
      return answer.text;
    },
  };
}

function webhookCalls(transport: Transport) {
  const send = async <Answer extends object>(path: string, body: unknown, options: WebhookOptions): Promise<Answer> =>
    json(transport, signed(post(path, body), options));
  return {
    /** `POST /webhooks/update`. */
    announceUpdate: (body: UpdateNotification, options: WebhookOptions = {}): Promise<AcceptedUpdate> =>
      send('/webhooks/update', body, options),

    /** `POST /webhooks/check-updates`. */
    checkUpdates: (name: string, { signal }: CallOptions = {}): Promise<UpdateCheck> =>
      json(transport, { ...post('/webhooks/check-updates', { service_name: name }), repeatable: true, signal }),

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

    /** `POST /webhooks/notify`. */
    notify: (body: Notification, options: WebhookOptions = {}): Promise<Confirmation> =>
      send('/webhooks/notify', body, options),

    /** `POST /webhooks/config`. */
    configureWebhooks: (body: WebhookConfigRequest, options: WebhookOptions = {}): Promise<Confirmation> =>
      send('/webhooks/config', body, options),

    /** `GET /webhooks/config`, of one service or, without a name, the global one. */
    webhookConfig: (name?: string, { signal }: CallOptions = {}): Promise<WebhookConfig> =>
      json(transport, get(`/webhooks/config${query({ service_name: name })}`, signal)),
  };
}

function exportPath(name: string, format: 'json' | 'csv', limit: number | undefined): string {
  return `/updates/history/${serviceSegment(name)}/export/${format}${query({ limit })}`;
}

function isHealthReport(answer: ApiAnswer): boolean {
  return isSuccess(answer) || (answer.status === 503 && typeof parseObject(answer.text)?.['status'] === 'string');
}
