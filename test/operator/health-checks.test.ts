import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import type { HealthCheckState } from '@rollcall/crds/types.gen.ts';
import { freePorts } from '@rollcall/local/ports.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { describe, expect, type TestContext, test } from 'vitest';
import { startInventoryBackend } from '../gateway/inventory-backend.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import { createWorld, startOperator, until, type World } from './fixtures.ts';

const INTERVAL_MS = 5000;
/** Until a replica has heard of it, on a busy machine. */
const NOTICE_MS = 5000;
const numbers = { interval_seconds: INTERVAL_MS / 1000, timeout_seconds: 1, success_threshold: 1 };
const settings = { ROLLCALL_SERVICE_ADDRESSES: 'any' };

async function listen(server: Server, port = 0): Promise<number> {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

const statusOf = async (world: World, name: string) => (await world.registrations.find(name))?.status?.check;

/** @param intervals of its check, after which it is to be so. */
async function untilChecked(world: World, name: string, ...[expected, intervals]: [HealthCheckState, number]) {
  const withinMs = intervals * INTERVAL_MS + NOTICE_MS;
  await until(`${name} is ${expected}`, async () => (await statusOf(world, name))?.status === expected, withinMs);
}

const healthEvents = async (world: World, name: string) =>
  (await world.events(name))
    .filter(({ reason = '' }) => /healthy$/i.test(reason))
    .map(({ type, reason, message }) => `${type} ${reason}: ${message}`);

async function startWorld(context: TestContext) {
  const world = await createWorld(context);
  const database = await createDatabase();
  const registry = await startRegistry({ namespace: world.namespace, databaseUrl: database.url });
  context.onTestFinished(async () => {
    await registry[Symbol.asyncDispose]();
    await database[Symbol.asyncDispose]();
  });
  const register = async (service_name: string, port: number, check: object) => {
    const body = { service_name, service_url: `http://127.0.0.1:${port}`, check: { ...numbers, ...check } };
    expect(await registry.call('POST', '/services/register', body)).toMatchObject({ status: 200 });
  };
  const healthy = async () => {
    const { body } = await registry.call('GET', '/services?healthy=true');
    return (body as { services: { service_name: string }[] }).services.map(({ service_name }) => service_name);
  };
  return { world, registry, register, healthy };
}

describe.concurrent('health checks', () => {
  test('services that are not well any more are Failing, and Passing when they are', async (context) => {
    // Of tests that run at once each polls by its own.
    const { expect } = context;
    const { world, registry, register, healthy } = await startWorld(context);
    const operator = await startOperator(world, { settings });
    let answer = 200;
    await using http = createHttpServer((_request, response) => void response.writeHead(answer).end());
    await using grpc = await startInventoryBackend();
    let tcp = createTcpServer();
    const tcpPort = await listen(tcp);
    await register('by-http', await listen(http), { type: 'http', path: '/health', failure_threshold: 2 });
    await register('by-tcp', tcpPort, { type: 'tcp', failure_threshold: 2 });
    await register('by-grpc', Number(new URL(grpc.url).port), { type: 'grpc', failure_threshold: 2 });
    const names = ['by-grpc', 'by-http', 'by-tcp'];
    const all = (expected: HealthCheckState, intervals: number) =>
      Promise.all(names.map((name) => untilChecked(world, name, expected, intervals)));
    await all('Passing', 1);
    expect(await healthy()).toEqual(names);

    answer = 503;
    tcp.close();
    grpc.health.set('NOT_SERVING');
    await all('Failing', 2);
    await expect.poll(healthy).toEqual([]);
    const { body } = await registry.call('GET', '/services/by-http/instances');
    const result = { status: 'failing', message: 'it answered 503' };
    expect(body).toMatchObject({
      instances: [{ healthy: false, check: { type: 'http', path: '/health', ...result } }],
    });
    const shown = (await world.registrations.get('by-http')).status;
    expect(shown).toMatchObject({ phase: 'Registered', conditions: [{ type: 'Ready' }, { type: 'Healthy' }] });
    expect(await operator.metric('rollcall_registrations_by_health{health="unhealthy"')).toBe(3);
    const unhealthy = 'Warning Unhealthy: Its check fails: it answered 503';
    await expect.poll(() => healthEvents(world, 'by-http'), { timeout: NOTICE_MS }).toEqual([unhealthy]);

    answer = 204;
    tcp = createTcpServer();
    await listen(tcp, tcpPort);
    grpc.health.set('SERVING');
    await all('Passing', 1);
    tcp.close();
    await expect.poll(healthy).toEqual(names);
    const well = 'Normal Healthy: Neither its report nor a check says otherwise';
    const events = async () => (await healthEvents(world, 'by-http')).toSorted();
    await expect.poll(events, { timeout: NOTICE_MS }).toEqual([well, unhealthy]);
    expect(await operator.metric('rollcall_health_changes_total{to="unhealthy"')).toBe(3);
    expect(await operator.metric('rollcall_health_checks_total{type="grpc",result="success"')).toBeGreaterThan(1);

    await registry.call('POST', '/services/register', { service_name: 'by-grpc', service_url: grpc.url });
    await until('nothing is left of its check', async () => (await statusOf(world, 'by-grpc')) === undefined);
  }, 90_000);

  test('a report that changes the health is an Event, too', async (context) => {
    const { expect } = context;
    const { world, registry, register } = await startWorld(context);
    await startOperator(world, { settings: { ROLLCALL_SERVICE_ADDRESSES: 'cluster' } });
    const [port = 0] = await freePorts(1);
    await register('refused', port, { type: 'tcp', failure_threshold: 1 });
    await register('reporting', port, { type: 'tcp', failure_threshold: 10 });
    for (const status of ['ok', 'draining', 'unhealthy', 'ok']) {
      await registry.call('POST', '/webhooks/health', { service_name: 'reporting', status });
      await until('the operator has seen it', async () => {
        const { conditions = [] } = (await world.registrations.get('reporting')).status ?? {};
        const condition = conditions.find(({ type }) => type === 'Healthy');
        return status === 'ok' ? condition?.status === 'True' : condition?.message === `It reports '${status}'`;
      });
    }
    await expect
      .poll(() => healthEvents(world, 'reporting'), { timeout: NOTICE_MS })
      .toEqual(
        expect.arrayContaining([
          "Warning Unhealthy: It reports 'draining'",
          'Normal Healthy: Neither its report nor a check says otherwise',
        ]),
      );
    expect(await healthEvents(world, 'reporting')).toHaveLength(2);
    await untilChecked(world, 'refused', 'Failing', 1);
    expect((await statusOf(world, 'refused'))?.message).toBe('Connections to 127.0.0.1 are not allowed');
  });

  test('the next leader goes on from what was written', async (context) => {
    const { expect } = context;
    const { world, register } = await startWorld(context);
    const first = await startOperator(world, { settings });
    const [port = 0] = await freePorts(1);
    await register('shop', port, { type: 'tcp', failure_threshold: 1 });
    await untilChecked(world, 'shop', 'Failing', 1);
    const written = await statusOf(world, 'shop');
    await first.stop();
    const second = await startOperator(world, { settings });
    await until('it makes checks', async () => (await second.metric('rollcall_health_checks_total')) > 0);
    await sleep(500);
    expect(await statusOf(world, 'shop')).toEqual(written);
    expect(await second.metric('rollcall_health_changes_total{to="healthy"')).toBe(0);
    const server = createTcpServer();
    await listen(server, port);
    await untilChecked(world, 'shop', 'Passing', 1);
    server.close();
  }, 60_000);
});
