import { Writable } from 'node:stream';
import { deliveryJobKind } from '@rollcall/crds/kinds.ts';
import type { DeliveryJob, DeliveryJobSpec, DeliveryJobStatus } from '@rollcall/crds/types.gen.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { connectByFile, type KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { type ResourceClient, resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import type { AllowedAddresses } from '@rollcall/platform/outbound/address-rules.ts';
import { createPool, type Pool } from '@rollcall/platform/postgres/pool.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { createMetrics } from '@rollcall/platform/process/metrics.ts';
import { createHistoryStore } from '@rollcall/registry/releases/store/history.ts';
import type { WebhookRules } from '@rollcall/registry/webhooks/domain/call-admission.ts';
import { buildApp } from '@rollcall/registry/wiring/app.ts';
import { createDelivery } from '@rollcall/registry/wiring/delivery.ts';
import { inject } from 'vitest';

export interface DeliveryOptions {
  readonly namespace: string;
  readonly databaseUrl: string;
  /** Another cluster than the shared one. */
  readonly kubeconfig?: string;
  /** After the first attempt. */
  readonly retryLimit?: number;
  /** Where notifications may go; anywhere by default, for the receivers are on this machine. */
  readonly webhookAddresses?: AllowedAddresses;
  /** Which calls may be made; by default as with `npm start`. */
  readonly webhookRules?: Partial<WebhookRules>;
  /** How long finished jobs are kept; for good by default, for tests finish them at any time. */
  readonly jobRetentionMs?: number;
}

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed text, where it is JSON. */
  readonly body: Record<string, unknown>;
}

/** The registry's delivery half in this process, on a port of its own. */
export interface DeliveryFixture extends AsyncDisposable {
  readonly connection: KubeConnection;
  readonly jobs: ResourceClient<DeliveryJob>;
  readonly pool: Pool;
  /** What the directory is to say of a service's current version. */
  readonly registered: Map<string, string>;
  databaseConnected(): boolean;
  /** Of the API, without a slash at its end. */
  readonly url: string;
  /** Everything logged so far, at the finest level. */
  logs(): string;
  get(path: string, headers?: Record<string, string>): Promise<Answer>;
  /** @param body nothing at all where it is undefined. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** Posts these very bytes. */
  postRaw(path: string, body: string, headers?: Record<string, string>): Promise<Answer>;
  /** Moves the wall clock of the registry to this moment and stops it. */
  setTime(at: Date): void;
}

export async function startDelivery(options: DeliveryOptions): Promise<DeliveryFixture> {
  const { namespace, databaseUrl, retryLimit = 4 } = options;
  let logged = '';
  const sink = new Writable({
    write(chunk, _encoding, done) {
      logged += String(chunk);
      done();
    },
  });
  const log = createLogger('test', 'trace', sink);
  let time: Date | undefined;
  const clock = { ...systemClock, now: () => time ?? systemClock.now() };
  const connection = await connectByFile(options.kubeconfig ?? inject('kubeconfig'), {
    clock: systemClock,
    requestTimeoutMs: 5000,
    maxSockets: 16,
  });
  const pool = createPool({ url: databaseUrl, schema: 'registry', maxConnections: 10, log });
  const registered = new Map<string, string>();
  const metrics = createMetrics('test');
  const delivery = await createDelivery({
    connection,
    namespace,
    pool,
    databaseUrl,
    webhookSecrets: 'rollcall-webhooks',
    webhookRules: { allowUnsigned: true, legacySignatures: false, plainSignatures: true, ...options.webhookRules },
    webhookAddresses: options.webhookAddresses ?? 'any',
    jobRetentionMs: options.jobRetentionMs ?? Number.POSITIVE_INFINITY,
    clock,
    log,
    metrics,
    currentVersion: (serviceName) => registered.get(serviceName),
    notificationRetries: { limit: retryLimit, delaySeconds: 1, delayMaxSeconds: 1, relaySeconds: 2 },
  });
  const { routes } = delivery;
  const app = await buildApp({
    log,
    metrics,
    version: '0',
    authentication: undefined,
    routes,
    closingLimitMs: 1000,
    isStopping: () => false,
  });
  for (const actor of delivery.actors) await actor.start();
  const url = `${await app.listen({ host: '127.0.0.1', port: 0 })}/api/v1`;

  async function request(path: string, init: RequestInit): Promise<Answer> {
    const response = await fetch(url + path, init);
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.startsWith('application/json') === true;
    return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : {} };
  }
  const postRaw: DeliveryFixture['postRaw'] = (path, body, headers = {}) =>
    request(path, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body });

  return {
    connection,
    url,
    jobs: resourceClient(connection, deliveryJobKind, namespace),
    pool,
    registered,
    databaseConnected: delivery.databaseConnected,
    logs: () => logged,
    get: (path, headers = {}) => request(path, { headers }),
    post: (path, body, headers) => postRaw(path, JSON.stringify(body), headers),
    postRaw,
    setTime: (at) => {
      time = at;
    },
    [Symbol.asyncDispose]: async () => {
      delivery.closeStreams();
      await app.close();
      for (const actor of delivery.actors.toReversed()) await actor.stop();
      await Promise.all([pool.end(), connection.close()]);
    },
  };
}

/** A job as somebody might apply it by hand. */
export function newJob(name: string, spec: Partial<DeliveryJobSpec> = {}) {
  return {
    apiVersion: 'rollcall.dev/v1alpha1' as const,
    kind: 'DeliveryJob' as const,
    metadata: { name },
    spec: {
      serviceName: 'shop',
      operation: 'Deploy' as const,
      version: '1.1.0',
      artifact: { type: 'image' as const, url: `shop:${spec.version ?? '1.1.0'}` },
      abort: false,
      promote: false,
      ...spec,
    },
  };
}

/** Writes a status as the operator would. */
export function setStatus(
  jobs: ResourceClient<DeliveryJob>,
  name: string,
  status: Partial<DeliveryJobStatus>,
): Promise<DeliveryJob> {
  return jobs.patch(name, { status }, { subresource: 'status' });
}

/** Writes a row of history without a job. */
export async function recordUpdate(
  pool: Pool,
  jobUid: string,
  fields: Partial<Parameters<ReturnType<typeof createHistoryStore>['record']>[0]> = {},
): Promise<void> {
  const { newVersion = '1.1.0', finishedAt = new Date('2026-11-20T12:00:00.000Z') } = fields;
  await createHistoryStore(() => pool).record({
    jobUid,
    jobName: `job-${jobUid}`,
    operation: 'Deploy',
    serviceName: 'shop',
    oldVersion: '1.0.0',
    newVersion,
    startedAt: new Date(finishedAt.getTime() - 10_000),
    finishedAt,
    outcome: 'success',
    artifact: { url: `shop:${newVersion}`, type: 'image', checksum: undefined },
    requestedBy: 'webhook',
    jobId: `job-${jobUid}`,
    strategy: undefined,
    isUpdate: true,
    oldRelease: undefined,
    reason: undefined,
    message: undefined,
    createdAt: new Date(finishedAt.getTime() - 11_000),
    ...fields,
  });
}
