import { deliveryJobKind } from '@rollcall/crds/kinds.ts';
import type { Artifact, DeliveryJob, DeliveryStrategy } from '@rollcall/crds/types.gen.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { connectByFile } from '@rollcall/platform/kube/connection.ts';
import { resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { inject } from 'vitest';
import { startReadyReplica } from '../../support/replica.ts';
import { countRequests, type LoadReport, proxyPath } from './load-report.ts';
import { appDeployment, appService, loadPod } from './manifests.ts';
import { type ClusterNamespace, createClusterNamespace, sharedCluster, waitForRollout } from './namespace.ts';

/** The service that is delivered, and its client. */
export const SERVICE = 'shop';
const CLIENT = 'client';
const REPLICAS = 4;
/**
 * Requests a second: enough to meet every moment of a job, and to leave the processors to the pods.
 */
const RATE = 150;

/** How often a job is observed; what `JobRun` says of times is late by that much at most. */
const POLL_INTERVAL_MS = 50;
/** For a job, whatever is measured meanwhile, on a busy machine too; 100 s on an idle one. */
const END_TIMEOUT_MS = 500_000;

const ENDS: readonly string[] = ['Succeeded', 'RolledBack', 'Failed'];

/** What the policy of a stage says beside what all have. */
export type PolicyChanges = Readonly<Record<string, unknown>>;

export interface StageOptions {
  readonly policy: PolicyChanges;
  /** Settings of the service's pods. */
  readonly env?: Readonly<Record<string, string>>;
  /** More objects in the namespace. */
  readonly manifests?: readonly object[];
  /** URL that the client uses; that of the Service by default. */
  readonly target?: string;
  /** Of the client: after these it makes a new connection. */
  readonly requestsPerConnection?: number;
  /** Of the service's Deployment. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** Of the operator, by the names of their variables. */
  readonly settings?: Readonly<Record<string, string>>;
}

/**
 * A service of four pods of version v1, a steady client of it, and an operator for its namespace.
 */
export interface DeliveryStage extends AsyncDisposable {
  readonly namespace: ClusterNamespace;
  readonly load: () => Promise<LoadReport>;
  /** Deploys version v2, by default its image, and returns at once. */
  deploy(strategy: DeliveryStrategy, artifact?: Artifact): Promise<JobRun>;
}

/** One job, followed. Instants are milliseconds since 1970. */
interface JobRun {
  /**
   * Waits until the job is in the stage, and returns when that was seen.
   *
   * @throws when the job ends before.
   */
  reached(stage: string): Promise<number>;
  /** Waits until the job pauses at the weight. @throws when the job ends before. */
  reachedWeight(weight: number): Promise<void>;
  /** Waits until the job says so. @throws when the job ends before. */
  reported(message: string): Promise<void>;
  /** What the job says of itself now. */
  status(): Promise<DeliveryJob['status']>;
  /** When the job was first seen in the phase. @throws when it was not. */
  enteredPhase(phase: string): number;
  /** The stages that were seen, with when that was. */
  timeline(): string;
  /** Waits until the job has ended, and returns it. */
  ended(): Promise<DeliveryJob>;
  /** Ends the pause. */
  promote(): Promise<void>;
  abort(): Promise<void>;
}

export async function openDeliveryStage({
  policy,
  env = {},
  manifests = [],
  target,
  requestsPerConnection = 10,
  annotations = {},
  settings = {},
}: StageOptions): Promise<DeliveryStage> {
  const { kubeconfigPath, appRepository } = sharedCluster();
  await using stack = new AsyncDisposableStack();
  const connection = await connectByFile(kubeconfigPath, {
    clock: systemClock,
    requestTimeoutMs: 20_000,
    maxSockets: 4,
  });
  stack.defer(() => connection.close());
  const namespace = stack.use(await createClusterNamespace());
  const image = `${appRepository}:v1`;
  const labels = { 'rollcall.dev/service': SERVICE };
  const apiVersion = 'rollcall.dev/v1alpha1';
  const spec = { serviceName: SERVICE, drainSeconds: 5, ...policy };
  await namespace.apply(
    appDeployment({ name: SERVICE, image, replicas: REPLICAS, labels, annotations, env }),
    appService(SERVICE),
    { apiVersion, kind: 'DeliveryPolicy', metadata: { name: SERVICE }, spec },
    ...manifests,
  );
  await waitForRollout(namespace, SERVICE);
  const serviceUrl = `http://${SERVICE}.${namespace.name}.svc.cluster.local`;
  await namespace.apply(
    loadPod({ name: CLIENT, image, target: target ?? serviceUrl, rate: RATE, requestsPerConnection }),
  );
  await namespace.kubectl('wait', '--for=condition=Ready', `pod/${CLIENT}`, '--timeout=120s');
  stack.use(
    await startReadyReplica('operator/src/main.ts', {
      logDirectory: inject('clusterDirectory'),
      access: { KUBECONFIG: kubeconfigPath },
      namespace: namespace.name,
      settings,
    }),
  );
  const jobs = resourceClient(connection, deliveryJobKind, namespace.name);
  const kept = stack.move();
  return {
    namespace,
    // Without kubectl, whose start takes a tenth of a second of a processor: it is asked again and again.
    load: () => connection.request({ method: 'GET', path: proxyPath(namespace, CLIENT, '/report') }),
    deploy: async (strategy, artifact = { type: 'image', url: `${appRepository}:v2` }) => {
      const spec = { serviceName: SERVICE, operation: 'Deploy', version: 'v2', artifact, strategy } as const;
      await namespace.apply({
        apiVersion: 'rollcall.dev/v1alpha1',
        kind: 'DeliveryJob',
        metadata: { name: 'job' },
        spec,
      });
      return follow(
        () => jobs.get('job'),
        async (change) => {
          await jobs.patch('job', { spec: change });
        },
      );
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

function follow(
  read: () => Promise<DeliveryJob>,
  set: (spec: { readonly promote?: true; readonly abort?: true }) => Promise<void>,
): JobRun {
  const stages = new Map<string, number>();
  const phases = new Map<string, number>();
  const startedAt = performance.now();
  const observe = async (): Promise<DeliveryJob> => {
    if (performance.now() - startedAt > END_TIMEOUT_MS) {
      throw new Error(`The job has not ended; it went through ${[...stages.keys()].join(', ')}`);
    }
    const job = await read();
    const { stage, phase } = job.status ?? {};
    if (stage !== undefined && !stages.has(stage)) stages.set(stage, Date.now());
    if (phase !== undefined && !phases.has(phase)) phases.set(phase, Date.now());
    return job;
  };
  const until = async (isReached: (job: DeliveryJob) => boolean, what: string): Promise<void> => {
    for (let job = await observe(); !isReached(job); job = await observe()) {
      if (hasEnded(job)) throw new Error(`The job has ended without ${what}: ${JSON.stringify(job.status)}`);
      await sleep(POLL_INTERVAL_MS);
    }
  };
  return {
    reached: async (stage) => {
      await until(() => stages.has(stage), stage);
      return stages.get(stage) ?? 0;
    },
    reachedWeight: (weight) =>
      until(({ status }) => status?.phase === 'Paused' && status.weight === weight, `a pause at weight ${weight}`),
    reported: (message) => until(({ status }) => status?.message === message, message),
    status: async () => (await observe()).status,
    enteredPhase: (phase) => {
      const at = phases.get(phase);
      if (at === undefined) throw new Error(`The job was never ${phase}, only ${[...phases.keys()].join(', ')}`);
      return at;
    },
    ended: async () => {
      while (true) {
        const job = await observe();
        if (hasEnded(job)) return job;
        await sleep(POLL_INTERVAL_MS);
      }
    },
    timeline: () => [...stages].map(([stage, at]) => `${new Date(at).toISOString().slice(11, 23)} ${stage}`).join(', '),
    promote: () => set({ promote: true }),
    abort: () => set({ abort: true }),
  };
}

function hasEnded({ status }: DeliveryJob): boolean {
  return ENDS.includes(status?.phase ?? '');
}

/** Waits until the client has made as many requests since a report, and returns its report then. */
export async function loadUntil(stage: DeliveryStage, since: LoadReport, requests: number): Promise<LoadReport> {
  while (true) {
    const report = await stage.load();
    if (countRequests(report) - countRequests(since) >= requests) return report;
    await sleep(500);
  }
}
