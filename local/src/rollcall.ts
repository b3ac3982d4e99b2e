import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errorMessage } from '@rollcall/platform/errors.ts';
import { applyClients, newClient } from './api-clients.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';
import type { ComponentName } from './control-plane-commands.ts';
import type { KubernetesBinaries } from './kubernetes-binaries.ts';
import { type Mailpit, startMailpit } from './mailpit.ts';
import { writeMessageProviders } from './message-providers.ts';
import { writePaymentProviders } from './payment-providers.ts';
import { freePorts } from './ports.ts';
import { type Postgres, startPostgres } from './postgres.ts';
import type { ManagedProcess } from './processes.ts';
import { startRedis } from './redis.ts';
import type { RedisBinary } from './redis-binary.ts';
import { type PlannedProcess, type ProcessPlan, planProcesses } from './rollcall-processes.ts';
import { writeSellers } from './sellers.ts';
import { createServiceRole } from './service-role.ts';
import { type ServiceContext, startService, waitUntilReady } from './services.ts';
import { startSimulators } from './simulators.ts';
import { type Supervised, supervise } from './supervisor.ts';
import { writeVaultKeys } from './vault-keys.ts';
import { waitUntil } from './wait.ts';

export interface RollcallOptions {
  /** Everything is kept below; what an earlier run left there is removed. */
  readonly directory: string;
  readonly binaries: KubernetesBinaries<ComponentName | 'kubectl'>;
  readonly redisBinary: RedisBinary;
  /** The mail server's executable; undefined: there is none, and so no mail server. */
  readonly mailpitFile: string | undefined;
  /** Environment of the services besides what is set here. */
  readonly env: NodeJS.ProcessEnv;
  readonly log: (line: string) => void;
  readonly signal: AbortSignal;
}

interface SampleService {
  readonly name: string;
  readonly url: string;
  readonly pid: number;
}

/** A running Rollcall with everything it needs, on 127.0.0.1. */
export interface Rollcall extends Omit<ProcessPlan, 'processes' | 'simulators'>, AsyncDisposable {
  /** A client of the gateway's, to try it with. */
  readonly client: { readonly id: string; readonly secret: string };
  readonly controlPlane: ControlPlane;
  readonly postgres: Postgres;
  /** Undefined: there is no mail server. */
  readonly mailpit: Mailpit | undefined;
  /** Base URLs of the simulators of providers, by name. Undefined: there are none. */
  readonly simulators: Readonly<Record<string, string>> | undefined;
  readonly samples: readonly SampleService[];
  /** Path of the kubectl that fits. */
  readonly kubectl: string;
  readonly logDirectory: string;
  /**
   * Rejects when the control plane, PostgreSQL or Redis ends by itself, or when a process of Rollcall
   * cannot be kept running. The sample services are there to be killed, and
   * neither the mail server nor simulators are part of Rollcall.
   */
  readonly failed: Promise<never>;
}

/** The namespace of the custom resources. */
const NAMESPACE = 'rollcall';
const FIRST_READY_TIMEOUT_MS = 60_000;
const SERVICE_STOP_GRACE_MS = 3_000;
const SAMPLE_STOP_GRACE_MS = 1_000;
const SAMPLE_REGISTERED_TIMEOUT_MS = 20_000;

const SAMPLE = 'local/src/sample-service.ts';
const SAMPLES = [
  { name: 'catalog', script: SAMPLE },
  { name: 'orders', script: SAMPLE },
  { name: 'mailer', script: SAMPLE },
  { name: 'auth', script: SAMPLE },
  { name: 'lms', script: SAMPLE },
  { name: 'users', script: 'local/src/sample-users.ts' },
] as const;

/**
 * Starts the control plane, PostgreSQL and Redis, the processes of Rollcall on them, and sample services that register themselves; then writes `endpoints.json`, which is there
 * as long as everything works.
 *
 * @throws when a part does not start; what had been started is stopped then.
 */
export async function startRollcall(options: RollcallOptions): Promise<Rollcall> {
  const { directory, log, signal } = options;
  await using stack = new AsyncDisposableStack();
  const [kubectl] = await Promise.all([linkKubectl(options), removeOldState(directory)]);
  const { controlPlane, postgres, redis, mailpit } = await startBackends(stack, options);
  const context: ServiceContext = {
    logDirectory: join(directory, 'log'),
    env: {
      // Services, providers and receivers of notifications are on this machine, and so is what checks
      // ask. Nothing that somebody types in to try it out is called beyond it.
      ROLLCALL_SERVICE_ADDRESSES: 'loopback',
      ROLLCALL_WEBHOOK_ADDRESSES: 'loopback',
      ROLLCALL_PROVIDER_ADDRESSES: 'loopback',
      ROLLCALL_CHECK_ADDRESSES: 'loopback',
      // Deploys without a secret, to try things out: what listens here is reached from this machine
      // alone.
      ROLLCALL_WEBHOOK_ALLOW_UNSIGNED: 'true',
      // Of the cluster that is only there to be tried out, everything may be delivered to; pods are
      // made up, images never pulled.
      ROLLCALL_DELIVERY_NAMESPACES: '*',
      ROLLCALL_FETCHER_IMAGE: 'rollcall.local/rollcall:latest',
      ...options.env,
      ...controlPlane.podEnvironment,
      NODE_COMPILE_CACHE: join(directory, 'compile-cache'),
      ROLLCALL_NAMESPACE: NAMESPACE,
      ROLLCALL_HOST: '127.0.0.1',
    },
  };
  log('Starting the operator, the registry, the gateway, communication, payment and federation');
  const messageProvidersFile = join(directory, 'message-providers.json');
  const paymentProvidersFile = join(directory, 'payment-providers.json');
  // To try everything with; with which payment has mails sent; with which federation tells who calls.
  const [client, paymentClient] = [newClient('demo', ['*']), newClient('payment', ['messages:send'])];
  const federationClient = newClient('federation', ['identities:exchange']);
  const plan = await planProcesses(log, {
    databaseUrls: await createServiceRoles(await postgres.createDatabase('rollcall')),
    redisUrl: redis.url,
    vaultKeysFile: await writeVaultKeys(join(directory, 'vault-keys.json')),
    messageProvidersFile,
    paymentProvidersFile,
    sellersFile: await writeSellers(join(directory, 'sellers.json')),
    paymentClientSecretFile: await writeSecret(join(directory, 'payment-client-secret'), paymentClient.secret),
    federationClientSecretFile: await writeSecret(join(directory, 'federation-client-secret'), federationClient.secret),
  });
  await writeMessageProviders(messageProvidersFile, { simulators: plan.simulators, smtpPort: mailpit?.smtpPort });
  await writePaymentProviders(paymentProvidersFile, plan.simulators);
  const { processes, registry, gateway, gatewayGrpc, communication, payment, federation } = plan;
  const [services, simulators] = await Promise.all([
    startServices(stack, { context, log, signal, processes }),
    startPlannedSimulators(stack, { directory, context, log, signal, plan }),
    applyClients({ kubectl, kubeconfigPath: controlPlane.kubeconfigPath }, NAMESPACE, [
      client,
      paymentClient,
      federationClient,
    ]),
  ]);
  const samples = await startSamples(stack, { context, registry, log, signal });
  const endpoints = {
    kubeconfig: controlPlane.kubeconfigPath,
    demoClient: { id: client.id, secret: client.secret },
    registry,
    gateway,
    gatewayGrpc,
    communication,
    payment,
    federation,
    mail: mailpit?.url,
    simulators,
    metrics: metricsOf(processes),
  };
  stack.defer(() => rm(endpointsFile(directory), { force: true }));
  await writeAtomically(endpointsFile(directory), `${JSON.stringify(endpoints, undefined, 2)}\n`);
  const failed = Promise.race([controlPlane, postgres, redis, ...services].map((part) => part.failed));
  failed.catch(() => undefined);
  const kept = stack.move();
  return {
    registry,
    gateway,
    gatewayGrpc,
    communication,
    payment,
    federation,
    client,
    controlPlane,
    postgres,
    mailpit,
    simulators,
    samples,
    kubectl,
    logDirectory: context.logDirectory,
    failed,
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

/**
 * For programs: `kubeconfig` (path), the base URLs `registry`, `gateway`, `communication`, `payment`
 * and `federation`, `gatewayGrpc` (`host:port`), `metrics`, URLs for Prometheus by process, and where there
 * are some: `mail`, the base URL of the mail server's API, and `simulators`, base URLs by name.
 */
export function endpointsFile(directory: string): string {
  return join(directory, 'endpoints.json');
}

function metricsOf(processes: Parameters<typeof startServices>[1]['processes']): Readonly<Record<string, string>> {
  return Object.fromEntries(processes.map(({ name, adminPort }) => [name, `http://127.0.0.1:${adminPort}/metrics`]));
}

async function removeOldState(directory: string): Promise<void> {
  const old = ['control-plane', 'postgres', 'redis', 'mailpit', 'log'];
  await Promise.all(old.map((name) => rm(join(directory, name), { recursive: true, force: true })));
}

async function linkKubectl({ directory, binaries }: RollcallOptions): Promise<string> {
  const link = join(directory, 'bin', 'kubectl');
  await mkdir(join(directory, 'bin'), { recursive: true });
  await rm(link, { force: true });
  await symlink(binaries.kubectl, link);
  return link;
}

async function startBackends(stack: AsyncDisposableStack, options: RollcallOptions) {
  const { directory, binaries, redisBinary, mailpitFile, log, signal } = options;
  log('Starting the Kubernetes control plane, PostgreSQL and Redis');
  const [controlPlane, postgres, redis, mailpit] = await Promise.all([
    stoppedBy(
      stack,
      startControlPlane({
        directory: join(directory, 'control-plane'),
        binaries,
        workloads: true,
        namespace: NAMESPACE,
        log,
        signal,
      }),
    ),
    stoppedBy(stack, startPostgres({ directory: join(directory, 'postgres'), signal })),
    stoppedBy(stack, startRedis({ directory: join(directory, 'redis'), binary: redisBinary, signal })),
    mailpitFile === undefined
      ? undefined
      : stoppedBy(stack, startMailpit({ directory: join(directory, 'mailpit'), file: mailpitFile, signal })),
  ]);
  mailpit?.failed.catch((err: unknown) => log(`No mail is accepted any more: ${errorMessage(err)}`));
  return { controlPlane, postgres, redis, mailpit };
}

/** When another part fails, one that is still starting is waited for and stopped. */
export function stoppedBy<T extends AsyncDisposable>(stack: AsyncDisposableStack, starting: Promise<T>): Promise<T> {
  stack.defer(async () => {
    const [result] = await Promise.allSettled([starting]);
    if (result.status === 'fulfilled') await result.value[Symbol.asyncDispose]();
  });
  return starting;
}

/** One after the other: each revokes what all may do in every database. */
async function createServiceRoles(adminUrl: string) {
  const registry = await createServiceRole(adminUrl, 'registry');
  const communication = await createServiceRole(adminUrl, 'communication');
  const payment = await createServiceRole(adminUrl, 'payment');
  const federation = await createServiceRole(adminUrl, 'federation');
  return { registry, communication, payment, federation };
}

interface ServicesOptions {
  readonly context: ServiceContext;
  readonly log: (line: string) => void;
  readonly signal: AbortSignal;
  readonly processes: readonly PlannedProcess[];
}

/** Like pods: a leader that loses its Lease ends and counts on being started again. */
async function startServices(stack: AsyncDisposableStack, options: ServicesOptions): Promise<Supervised[]> {
  const { context, log, signal, processes } = options;
  const leaving = new AbortController();
  const waiting = AbortSignal.any([signal, leaving.signal]);
  const starting = processes.map(({ adminPort, ...service }) => {
    let timeoutMs = FIRST_READY_TIMEOUT_MS;
    return supervise({
      name: service.name,
      start: () =>
        startService({ ...service, env: { ROLLCALL_ADMIN_PORT: String(adminPort), ...service.env } }, context),
      ready: async (started) => {
        await waitUntilReady(started, adminPort, { signal: waiting, timeoutMs });
        // Started again it may have to wait for an API server.
        timeoutMs = Number.POSITIVE_INFINITY;
      },
      log,
      graceMs: SERVICE_STOP_GRACE_MS,
    });
  });
  // All at once: each may wait for another one to the end of its grace. Where one does not start, others may not have.
  stack.defer(async () => {
    leaving.abort();
    const all = await Promise.allSettled(starting);
    await Promise.all(all.flatMap((each) => (each.status === 'fulfilled' ? [each.value.stop()] : [])));
  });
  return Promise.all(starting);
}

interface PlannedSimulatorsOptions extends Omit<ServicesOptions, 'processes'> {
  readonly directory: string;
  readonly plan: ProcessPlan;
}

/** @returns where they are; undefined where they do not start. */
async function startPlannedSimulators(stack: AsyncDisposableStack, options: PlannedSimulatorsOptions) {
  const { directory, plan, ...others } = options;
  const { simulators: planned } = plan;
  const starting = startSimulators({ planned, settingsFile: join(directory, 'simulators.json'), ...others });
  stack.defer(async () => {
    const [started] = await Promise.allSettled([starting]);
    if (started.status === 'fulfilled') await started.value?.stop();
  });
  return (await starting) && planned.urls;
}

interface SamplesOptions {
  readonly context: ServiceContext;
  readonly registry: string;
  readonly log: (line: string) => void;
  readonly signal: AbortSignal;
}

async function startSamples(stack: AsyncDisposableStack, options: SamplesOptions): Promise<SampleService[]> {
  const { context, registry, log, signal } = options;
  // They run in no pod: what says where the API server is would make them believe so.
  const { PATH, NODE_COMPILE_CACHE } = context.env;
  const plain = { ...context, env: { PATH, NODE_COMPILE_CACHE } };
  const ports = await freePorts(SAMPLES.length);
  const processes: ManagedProcess[] = [];
  // All at once: each may wait for a registry that no longer answers.
  stack.defer(async () => {
    await Promise.all(processes.map((sample) => sample.stop({ graceMs: SAMPLE_STOP_GRACE_MS })));
  });
  return Promise.all(
    SAMPLES.map(async ({ name, script }, index) => {
      const port = String(ports[index] ?? 0);
      const started = await startService({ name, script, args: [name, port, registry, 'rest'] }, plain);
      processes.push(started);
      const isRegistered = async () => (await fetch(`${registry}/api/v1/services/${name}`)).status === 200;
      await waitUntil(`the sample service ${name} is registered`, isRegistered, {
        timeoutMs: SAMPLE_REGISTERED_TIMEOUT_MS,
        signal,
        failed: started.failed,
      });
      started.failed.catch(() => log(`The sample service ${name} has ended: it expires 60 s after its last heartbeat`));
      return { name, url: `http://127.0.0.1:${port}`, pid: started.pid };
    }),
  );
}

async function writeSecret(file: string, secret: string): Promise<string> {
  await writeFile(file, secret, { mode: 0o600 });
  return file;
}

async function writeAtomically(file: string, content: string): Promise<void> {
  const temporary = `${file}.${process.pid}`;
  // It has the secret of the demo client.
  await writeFile(temporary, content, { mode: 0o600 });
  await rename(temporary, file);
}
