import { errorFromAnswer, parseObject, RegistryError } from './registry-error.ts';
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
import {
  type ApiAnswer,
  type ApiRequest,
  type ConnectionOptions,
  createTransport,
  type Transport,
} from './transport.ts';
import { type WatchEvent, type WatchOptions, watchServices } from './watch.ts';
import { signWebhook } from './webhook-signature.ts';

/** @public */
export interface CallOptions {
  /** Gives the call up; it then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** @public */
export interface HistoryOptions extends CallOptions {
  /** Largest number of entries. */
  readonly limit?: number | undefined;
}

/** @public */
export interface WebhookOptions extends CallOptions {
  /** The service's webhook secret: the body is signed with it. */
  readonly secret?: string | undefined;
}

/**
 * The registry API (contract 1), a method per endpoint. Results are the API's JSON as it is.
 *
 * Every method rejects with a {@link RegistryError}: with `status`, `error` and `message` where the registry refused,
 * without `status` where none answered. With several servers, calls that may be repeated are tried on the next one when one
 * does not answer or says that it is unavailable.
 */
export type RegistryClient = ReturnType<typeof createRegistryClient>;

/** @throws TypeError where a server's URL is unusable. */
export function createRegistryClient(options: ConnectionOptions) {
  const transport = createTransport(options);
  return { ...serviceCalls(transport), ...updateCalls(transport), ...webhookCalls(transport) };
}

function serviceCalls(transport: Transport) {
  return {
    /** `GET /health`. An unhealthy registry answers 503 with a report too: that is a result, not an error. */
    health: ({ signal }: CallOptions = {}): Promise<HealthReport> =>
      json(transport, { method: 'GET', path: '/health', repeatable: false, signal }, isHealthReport),

    /** `POST /services/register`. A name that is live keeps its `service_id` and gets the new facts. */
    register: (body: RegisterRequest, { signal }: CallOptions = {}): Promise<RegisteredService> =>
      json(transport, { ...post('/services/register', body), repeatable: true, signal }),

    /** `GET /services`. */
    listServices: (filter: ServiceFilter = {}, { signal }: CallOptions = {}): Promise<ServiceList> =>
      json(transport, get(`/services${query({ capability: filter.capability, prefix: filter.prefix })}`, signal)),

    /** `GET /services/{service_name}`. Status 404: not registered, or expired. */
    getService: async (name: string, { signal }: CallOptions = {}): Promise<ServiceRecord> =>
      json(transport, get(`/services/${segment(name)}`, signal)),

    /** `DELETE /services/{service_name}`. */
    deregister: async (name: string, { signal }: CallOptions = {}): Promise<RemovedService> =>
      json(transport, { method: 'DELETE', path: `/services/${segment(name)}`, repeatable: true, signal }),

    /** `POST /services/{service_name}/heartbeat`. Status 400: not registered, or expired; register again. */
    heartbeat: async (name: string, { signal }: CallOptions = {}): Promise<HeartbeatAnswer> =>
      json(transport, { method: 'POST', path: `/services/${segment(name)}/heartbeat`, repeatable: true, signal }),

    /** `GET /services/watch`, one connection of it; see {@link watchServices}. */
    watch: (options: WatchOptions = {}): AsyncGenerator<WatchEvent, void> => watchServices(transport, options),
  };
}

function updateCalls(transport: Transport) {
  return {
    /** `GET /updates/history/{service_name}`. */
    serviceHistory: async (name: string, { limit, signal }: HistoryOptions = {}): Promise<ServiceUpdateHistory> =>
      json(transport, get(`/updates/history/${segment(name)}${query({ limit })}`, signal)),

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
  async function signed<Answer extends object>(
    path: string,
    body: unknown,
    { secret, signal }: WebhookOptions,
  ): Promise<Answer> {
    const request = post(path, body);
    const headers =
      secret === undefined ? {} : { 'x-webhook-signature': await signWebhook(secret, request.body ?? '') };
    return json(transport, { ...request, headers, signal });
  }
  return {
    /** `POST /webhooks/update`. */
    announceUpdate: (body: UpdateNotification, options: WebhookOptions = {}): Promise<AcceptedUpdate> =>
      signed('/webhooks/update', body, options),

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
      signed('/webhooks/deploy', body, options),

    /** `POST /webhooks/rollback`. */
    rollBack: (body: RollbackRequest, options: WebhookOptions = {}): Promise<AcceptedJob> =>
      signed('/webhooks/rollback', body, options),

    /** `POST /webhooks/notify`. */
    notify: (body: Notification, { signal }: CallOptions = {}): Promise<Confirmation> =>
      json(transport, { ...post('/webhooks/notify', body), signal }),

    /** `POST /webhooks/config`. */
    configureWebhooks: (body: WebhookConfigRequest, options: WebhookOptions = {}): Promise<Confirmation> =>
      signed('/webhooks/config', body, options),

    /** `GET /webhooks/config`, of one service or, without a name, the global one. */
    webhookConfig: (name?: string, { signal }: CallOptions = {}): Promise<WebhookConfig> =>
      json(transport, get(`/webhooks/config${query({ service_name: name })}`, signal)),
  };
}

function exportPath(name: string, format: 'json' | 'csv', limit: number | undefined): string {
  return `/updates/history/${segment(name)}/export/${format}${query({ limit })}`;
}

function get(path: string, signal: AbortSignal | undefined): ApiRequest {
  return { method: 'GET', path, repeatable: true, signal };
}

/** Not repeatable unless the caller says so: a webhook done twice may be two jobs or two messages. */
function post(path: string, body: unknown): ApiRequest {
  return { method: 'POST', path, body: JSON.stringify(body), repeatable: false };
}

async function json<Answer extends object>(
  transport: Transport,
  request: ApiRequest,
  isResult: (answer: ApiAnswer) => boolean = isSuccess,
): Promise<Answer> {
  const answer = await transport.send(request);
  const { status, text, server } = answer;
  if (!isResult(answer)) throw errorFromAnswer(status, text, server);
  try {
    const body: Answer = JSON.parse(text);
    if (isObject(body)) return body;
  } catch {
    // Told as below: whoever answered, it was not a registry.
  }
  const message = `${server} did not answer with a JSON object: is it a registry?`;
  throw new RegistryError(message, { status, error: 'Unexpected answer', server });
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}

function isSuccess({ status }: ApiAnswer): boolean {
  return status >= 200 && status < 300;
}

function isHealthReport(answer: ApiAnswer): boolean {
  return isSuccess(answer) || (answer.status === 503 && typeof parseObject(answer.text)?.['status'] === 'string');
}

/** Names that a URL cannot hold as one path segment would reach another endpoint: refuse them as the registry does. */
function segment(name: string): string {
  if (name === '' || name === '.' || name === '..') {
    throw new RegistryError(`'${name}' is not a service name`, { status: 400, error: 'Invalid service name' });
  }
  return encodeURIComponent(name);
}

function query(parameters: Readonly<Record<string, string | number | undefined>>): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) search.set(name, String(value));
  return search.size === 0 ? '' : `?${search.toString()}`;
}
