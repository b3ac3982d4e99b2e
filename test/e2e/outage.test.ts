import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Deployment, startDeployment } from '../support/deployment.ts';
import { openEventStream } from '../support/event-stream.ts';
import { type Fleet, startFleet } from '../support/fleet.ts';

const SIZE = 300;
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

test('the API server is gone for three TTLs: no live service is expired, one that died is', async () => {
  const [registry] = deployment.registries;
  const [victim] = fleet.members;
  if (registry === undefined || victim === undefined) throw new Error('nothing to test with');
  const { current } = registry;
  // A registration that the other replica took is known here once its event has come, which a
  // killed API server sends to nobody.
  await expect
    .poll(async () => (await current.call('GET', '/services')).body?.['total'], { timeout: 15_000 })
    .toBe(SIZE);

  await deployment.controlPlane.stopApiServer();
  const goneAt = performance.now();
  victim.alive = false;
  await expect.poll(async () => (await current.call('GET', '/health')).status, { timeout: 15_000 }).toBe(503);
  const health = await current.call('GET', '/health');
  expect(health.body).toMatchObject({ status: 'unhealthy', store: 'disconnected' });
  expect(health.body?.['cache']).toMatchObject({ size: SIZE });
  while (performance.now() - goneAt < OUTAGE_MS) {
    const known = await current.call('GET', `/services/${fleet.members.at(-1)?.name}`);
    expect([known.status, (await current.call('GET', '/services')).body?.['total']]).toEqual([200, SIZE]);
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

  await using stream = await openEventStream(`${current.url}/api/v1/services/watch`);
  await stream.until('synced');
  // It answers the operator before it says that it is ready.
  const startedAt = performance.now();
  await deployment.controlPlane.startApiServer();
  await expect.poll(async () => (await current.call('GET', '/health')).status, { timeout: 20_000 }).toBe(200);
  const gone = (await stream.until('expired', EXPIRY_LIMIT_MS)).at(-1);
  expect(gone?.data['service_name']).toBe(victim.name);
  expect(performance.now() - startedAt).toBeGreaterThan(TTL_MS - 5000);

  // Whoever else was to be expired by mistake would be by now.
  await wait(20_000);
  expect((await current.call('GET', '/services')).body?.['total']).toBe(SIZE - 1);
  expect(fleet.members.filter(({ refusals }) => refusals > 0)).toEqual([]);
  const phases = await deployment.kubectl([
    'get',
    'sreg',
    '-o',
    'jsonpath={range .items[*]}{.status.phase}{"\\n"}{end}',
  ]);
  expect(phases.split('\n').filter((phase) => phase === 'Expired')).toHaveLength(1);
});
