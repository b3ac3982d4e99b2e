import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Deployment, startDeployment } from '../support/deployment.ts';
import { openEventStream } from '../support/event-stream.ts';
import { type Fleet, startFleet } from '../support/fleet.ts';
import type { RunningService } from '../support/replica.ts';

const SIZE = 300;
const PER_NAME = 3;
const NAMES = SIZE / PER_NAME;
const TTL_MS = 20_000;
const OUTAGE_MS = 3 * TTL_MS;
/**
 * From the return of the API server: its informers and the leader Lease, then the grace, then the
 * expiry itself.
 */
const EXPIRY_LIMIT_MS = 25_000 + TTL_MS;

let deployment: Deployment;
let fleet: Fleet;

beforeAll(async () => {
  deployment = await startDeployment({
    registries: 2,
    operators: 2,
    registrySettings: { ROLLCALL_TTL_SECONDS: String(TTL_MS / 1000) },
  });
  fleet = await startFleet({
    size: SIZE,
    perName: PER_NAME,
    prefix: 'fleet',
    urls: deployment.registries.map(({ current }) => current.url),
    heartbeatMs: TTL_MS / 2,
  });
});

afterAll(async () => {
  await fleet?.[Symbol.asyncDispose]();
  await deployment?.[Symbol.asyncDispose]();
});

const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** How many instances a replica knows, of all names. */
async function known(replica: RunningService): Promise<number> {
  const names = new Set(fleet.members.map(({ name }) => name));
  const answers = await Promise.all([...names].map((name) => replica.call('GET', `/services/${name}/instances`)));
  return answers.reduce((sum, { body }) => sum + ((body?.['instances'] as unknown[] | undefined)?.length ?? 0), 0);
}

/** When each Lease was renewed last. */
async function renewals(): Promise<number[]> {
  const times = 'jsonpath={.items[*].spec.renewTime}';
  const leases = await deployment.kubectl(['get', 'leases', '-l', 'rollcall.dev/heartbeat=true', '-o', times]);
  return leases.split(' ').map((time) => Date.parse(time));
}

test('the API server is gone for three TTLs: no live service is expired, one that died is', async () => {
  const [registry] = deployment.registries;
  // Others of its name live on.
  const [, victim] = fleet.members;
  if (registry === undefined || victim === undefined) throw new Error('nothing to test with');
  const { current } = registry;
  // A registration that the other replica took is known here once its event has come, which a
  // killed API server sends to nobody.
  await expect.poll(() => known(current), { timeout: 15_000 }).toBe(SIZE);

  await deployment.controlPlane.stopApiServer();
  const goneAt = performance.now();
  victim.alive = false;
  await expect.poll(async () => (await current.call('GET', '/health')).status, { timeout: 15_000 }).toBe(503);
  const health = await current.call('GET', '/health');
  expect(health.body).toMatchObject({ status: 'unhealthy', store: 'disconnected' });
  expect(health.body?.['cache']).toMatchObject({ size: NAMES });
  while (performance.now() - goneAt < OUTAGE_MS) {
    expect(await known(current)).toBe(SIZE);
    expect((await current.call('GET', '/services')).body?.['total']).toBe(NAMES);
    const body = { service_name: 'newcomer', service_url: 'http://a' };
    for (const answer of [
      await current.call('GET', '/services/unknown-name'),
      await current.call('POST', '/services/register', body),
      await current.call('DELETE', '/services/fleet-1'),
    ]) {
      expect(answer.status).toBe(503);
      expect(answer.body).toEqual({ error: 'Store is not available', message: expect.any(String) });
    }
    await wait(5000);
  }

  await using stream = await openEventStream(`${current.url}/api/v1/services/watch?instances=true`);
  await stream.until('synced');
  // It answers the operator before it says that it is ready.
  const startedAt = performance.now();
  const startedOn = Date.now();
  await deployment.controlPlane.startApiServer();
  await expect.poll(async () => (await current.call('GET', '/health')).status, { timeout: 20_000 }).toBe(200);
  const gone = (await stream.until('expired', EXPIRY_LIMIT_MS)).at(-1);
  expect(gone?.data).toMatchObject({ service_name: victim.name, instance_id: victim.instanceId });
  expect(performance.now() - startedAt).toBeGreaterThan(TTL_MS - 5000);

  // Whoever else was to be expired by mistake would be by now.
  await wait(20_000);
  expect((await current.call('GET', '/services')).body?.['total']).toBe(NAMES);
  for (const { name, serviceId } of fleet.members) {
    expect((await current.call('GET', `/services/${name}`)).body).toMatchObject({ service_id: serviceId });
  }
  expect(fleet.members.filter(({ refusals }) => refusals > 0)).toEqual([]);
  const phases = await deployment.kubectl([
    'get',
    'sreg',
    '-o',
    'jsonpath={range .items[*]}{.status.phase}{"\\n"}{end}',
  ]);
  expect(phases.split('\n').filter((phase) => phase === 'Expired')).toHaveLength(1);
  const beats = await renewals();
  expect(beats).toHaveLength(SIZE - 1);
  expect(Math.min(...beats)).toBeGreaterThan(startedOn);
});
