import { freePorts } from '@rollcall/local/ports.ts';
import { type Clock, systemClock } from '@rollcall/platform/clock.ts';
import { runProcess } from '@rollcall/platform/process/main.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { registryProcess } from '@rollcall/registry/wiring/service.ts';
import { expect, inject, type TestContext, test } from 'vitest';
import { createNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistryProcess } from '../support/registry.ts';
import { startReadyReplica } from '../support/replica.ts';

const TTL_MS = 8000;
/** Below TTL less absorb window, with a margin for a machine that stops for a while. */
const BEAT_INTERVAL_MS = 1000;
const MINUTES = 60_000;
const settings = { ROLLCALL_TTL_SECONDS: String(TTL_MS / 1000) };

/** A wall clock that is wrong by as much as the test says; durations are still measured. */
interface WrongClock extends Clock {
  offByMs: number;
}

interface Scene {
  readonly clock: WrongClock;
  /** Base URL of a registry in this process with the wrong clock. */
  readonly wrong: string;
  /** Base URL of one in a process of its own with the right clock. */
  readonly right: string;
}

/** Both registries and an operator process on a namespace of the test's own. */
async function setUp({ onTestFinished }: TestContext, offByMs: number): Promise<Scene> {
  const namespace = await createNamespace('clocks');
  const database = await createDatabase();
  onTestFinished(() => database[Symbol.asyncDispose]());
  const clock: WrongClock = {
    offByMs,
    now() {
      return new Date(systemClock.now().getTime() + this.offByMs);
    },
    monotonicMs: () => systemClock.monotonicMs(),
  };
  const [port = 0, adminPort = 0] = await freePorts(2);
  const requested = Promise.withResolvers<string>();
  const environment = {
    ...settings,
    KUBECONFIG: inject('kubeconfig'),
    ROLLCALL_NAMESPACE: namespace.name,
    ROLLCALL_SERVICE_ADDRESSES: 'any',
    ROLLCALL_DATABASE_URL: database.url,
    ROLLCALL_HOST: '127.0.0.1',
    ROLLCALL_PORT: String(port),
    ROLLCALL_GRPC_PORT: '0',
    ROLLCALL_ADMIN_PORT: String(adminPort),
    ROLLCALL_LOG_LEVEL: 'silent',
  };
  const running = runProcess(registryProcess, { environment, clock, stopRequested: requested.promise });
  onTestFinished(async () => {
    requested.resolve('the test stops it');
    expect(await running).toBe(0);
  });
  const operator = await startReadyReplica('operator/src/main.ts', {
    logDirectory: inject('temporaryDirectory'),
    access: inject('podEnvironment'),
    namespace: namespace.name,
    settings: { ROLLCALL_IMPORT: 'false' },
  });
  onTestFinished(() => operator[Symbol.asyncDispose]());
  const registry = await startRegistryProcess({ namespace: namespace.name, databaseUrl: database.url, settings });
  onTestFinished(() => registry[Symbol.asyncDispose]());
  const wrong = `http://127.0.0.1:${port}`;
  await expect.poll(() => statusOf('GET', `${wrong}/api/v1/health`), { timeout: 30_000 }).toBe(200);
  return { clock, wrong, right: registry.url };
}

async function statusOf(method: string, url: string): Promise<number> {
  try {
    return (await fetch(url, { method })).status;
  } catch {
    return 0;
  }
}

interface ServiceRecord {
  readonly service_id: string;
  readonly registered_at: string;
  readonly last_heartbeat: string;
}

async function read(registry: string, name: string): Promise<ServiceRecord | undefined> {
  const response = await fetch(`${registry}/api/v1/services/${name}`);
  return response.status === 200 ? ((await response.json()) as ServiceRecord) : undefined;
}

async function register(registry: string, name: string): Promise<void> {
  const body = JSON.stringify({ service_name: name, service_url: 'http://127.0.0.1:9' });
  const headers = { 'content-type': 'application/json' };
  const { status } = await fetch(`${registry}/api/v1/services/register`, { method: 'POST', headers, body });
  expect(status).toBe(200);
}

/**
 * Sends heartbeats to these registries in turn until it is stopped.
 *
 * @returns every answer but 200.
 */
async function beat(registries: readonly string[], name: string, until: Promise<unknown>): Promise<number[]> {
  const refused: number[] = [];
  const over = new AbortController();
  void until.finally(() => over.abort());
  for (let beats = 0; !over.signal.aborted; beats += 1) {
    const registry = registries[beats % registries.length] ?? '';
    const status = await statusOf('POST', `${registry}/api/v1/services/${name}/heartbeat`);
    if (status !== 200) refused.push(status);
    await sleep(BEAT_INTERVAL_MS);
  }
  return refused;
}

/**
 * For how long after the instant (monotonic) any registry found the service, and when none did any
 * more.
 */
async function lifetime(registries: readonly string[], name: string, sinceMs: number) {
  let lastFoundAtMs = sinceMs;
  await expect
    .poll(
      async () => {
        const found = await Promise.all(registries.map((registry) => read(registry, name)));
        const anywhere = found.some((record) => record !== undefined);
        if (anywhere) lastFoundAtMs = performance.now();
        return anywhere;
      },
      { timeout: 45_000, interval: 50 },
    )
    .toBe(false);
  return { goneAfterMs: performance.now() - sinceMs, foundForMs: lastFoundAtMs - sinceMs };
}

test.concurrent.for([
  { sentence: 'ten minutes ahead', offByMs: 10 * MINUTES },
  { sentence: 'ten minutes behind', offByMs: -10 * MINUTES },
])(
  'a registry whose clock is $sentence neither expires nor keeps anything because of it',
  { timeout: 180_000 },
  async ({ offByMs }, context) => {
    const scene = await setUp(context, offByMs);
    const { wrong, right } = scene;
    const registries = [wrong, right];
    for (const name of ['steady', 'turns']) await register(wrong, name);
    const steady = await read(wrong, 'steady');

    const silentFrom = performance.now();
    await register(wrong, 'silent');
    const silent = lifetime(registries, 'silent', silentFrom);
    // Long enough for what stopped to expire, and for what goes on to show that it does.
    const over = Promise.all([silent, sleep(3 * TTL_MS)]);
    const [refused, refusedInTurns, { goneAfterMs, foundForMs }] = await Promise.all([
      beat([wrong], 'steady', over),
      beat(registries, 'turns', over),
      silent,
    ]);
    expect([refused, refusedInTurns]).toEqual([[], []]);
    for (const registry of registries)
      expect(await read(registry, 'steady')).toMatchObject({ service_id: steady?.service_id });
    expect(goneAfterMs).toBeGreaterThanOrEqual(TTL_MS);
    // Ten minutes would be far beyond.
    expect(foundForMs).toBeLessThan(5 * TTL_MS);

    // Times in answers: by whose clock, and never that a heartbeat came before the registration.
    for (const registry of registries) {
      const record = await read(registry, 'steady');
      const registeredAt = Date.parse(record?.registered_at ?? '');
      expect(Math.abs(registeredAt - Date.now())).toBeLessThan(5 * MINUTES);
      const lastHeartbeat = Date.parse(record?.last_heartbeat ?? '');
      const expected = offByMs > 0 ? Date.now() + offByMs : registeredAt;
      expect(Math.abs(lastHeartbeat - expected)).toBeLessThan(5 * MINUTES);
      expect(lastHeartbeat).toBeGreaterThanOrEqual(registeredAt);
    }
  },
);

test.concurrent('a clock that is set back and forth while the registry runs changes no deadline', {
  timeout: 180_000,
}, async (context) => {
  const { clock, wrong, right } = await setUp(context, 0);
  await register(wrong, 'steady');
  const silentFrom = performance.now();
  await register(wrong, 'silent');
  const silent = lifetime([wrong, right], 'silent', silentFrom);
  const over = Promise.all([silent, sleep(3 * TTL_MS)]);
  const stepping = (async () => {
    for (const offByMs of [10 * MINUTES, -10 * MINUTES, 10 * MINUTES, 0]) {
      await sleep(TTL_MS / 2);
      clock.offByMs = offByMs;
    }
  })();
  const [refused, { goneAfterMs }] = await Promise.all([beat([wrong], 'steady', over), silent, stepping]);
  expect(refused).toEqual([]);
  expect(goneAfterMs).toBeGreaterThanOrEqual(TTL_MS);
  expect(await read(right, 'steady')).toBeDefined();
});
