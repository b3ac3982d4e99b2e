import { status } from '@grpc/grpc-js';
import { register } from '@rollcall/client/registration.ts';
import { serviceDefinition } from '@rollcall/platform/grpc/protocols.ts';
import { loadProtocol } from '@rollcall/registry/grpc/protocol.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClient, tokenOf } from '../gateway/gateway.ts';
import { methodDefinition } from '../gateway/grpc-methods.ts';
import { type Deployment, startDeployment } from '../support/deployment.ts';
import type { Supervised } from '../support/supervised.ts';
import { type Changes, startChanges } from './changes.ts';
import { type EchoBackend, startEchoBackend } from './echo-backend.ts';
import { byWatch, byWebSocket, type Follower, follow } from './followers.ts';
import { at, badTokens, type Kill, killReplica, untilBack, untilStatus } from './gateway-fixture.ts';
import { type CallOutcome, type GrpcLoad, startGrpcLoad } from './grpc-load.ts';
import { type Intruders, startIntruders } from './intruders.ts';

/** Of whom nobody has heard: asked for with a token it is not found. */
const PATH = '/api/v1/nobody';
const REGISTRY = 'rollcall.registry.v1.Registry';
const LANES = 8;
/** Of a call to the service: with so many lanes there are always some under way. */
const CALL_MS = 50;
const HOP_MS = 1000;
/** How soon everybody hears that a killed process is gone. */
const NOTICED_WITHIN_MS = 10_000;
/**
 * Once nothing changes any more. The API server lets nobody watch for some seconds after its
 * return.
 */
const IN_STEP_WITHIN_MS = 30_000;
/** WebSocket: without a closing handshake. */
const LOST = 1006;

let deployment: Deployment;
let echo: EchoBackend;
let loads: Record<'echo' | 'registry' | 'badEcho' | 'badRegistry', GrpcLoad>;
let intruders: Intruders;
let followers: { staying: readonly Follower[]; hopping: readonly Follower[] };
/** What all of the changes come to: URLs by name. */
const registered = new Map<string, string>();
const gatewayKills: Kill[] = [];
const registryKills: Kill[] = [];
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  deployment = stack.use(
    await startDeployment({
      registries: 2,
      operators: 0,
      gateways: 2,
      gatewaySettings: {
        ROLLCALL_LIMIT_PREMIUM: '1000000',
        ROLLCALL_LIMIT_ANONYMOUS: '1000000',
        // The machine may be busy: Redis is to be unavailable when it is killed, and not before.
        ROLLCALL_REDIS_TIMEOUT_MS: '5000',
      },
    }),
  );
  const { gateways, registries } = deployment;
  echo = stack.use(await startEchoBackend(CALL_MS));
  const servers = registries.map(({ current }) => current.url);
  const registration = stack.use(register({ servers, name: 'rollcall.test', url: echo.url, capabilities: ['grpc'] }));
  await registration.registered;
  registered.set('rollcall.test', echo.url);
  const caller = await createClient(deployment, { id: 'caller', scopes: ['registrations:read'] });
  const token = await tokenOf(at(gateways, 0).current, caller);
  for (const gateway of gateways) await untilStatus(gateway, { path: PATH, token }, 404);
  const bad = [undefined, ...(await badTokens(deployment, { path: PATH, token }))];
  startLoads(token, bad);
  followers = startFollowers(token);
});

afterAll(async () => {
  await stopAll();
  await stack.disposeAsync();
});

async function stopAll(): Promise<void> {
  const all = [...Object.values(loads ?? {}), intruders, ...(followers?.staying ?? []), ...(followers?.hopping ?? [])];
  await Promise.all(all.map((each) => each?.stop()));
}

const webSocketUrls = () => deployment.gateways.map(({ current }) => `${current.url.replace('http', 'ws')}/api/ws`);
const grpcPorts = () => deployment.gateways.map(({ grpcPort }) => grpcPort);

function startLoads(token: string, bad: readonly (string | undefined)[]): void {
  const get = serviceDefinition(loadProtocol(), REGISTRY)['Get'];
  if (get === undefined) throw new Error('The registry has no method Get');
  const ports = grpcPorts();
  const toEcho = { ports, method: methodDefinition('Unary'), request: Buffer.from('hello'), pauseMs: 5 };
  const toRegistry = { ports, method: get, request: { serviceName: 'rollcall.test' }, pauseMs: 60 };
  const badToken = (call: number) => bad[call % bad.length];
  loads = {
    echo: startGrpcLoad({ ...toEcho, lanes: LANES, token: () => token }),
    registry: startGrpcLoad({ ...toRegistry, lanes: 4, token: () => token }),
    badEcho: startGrpcLoad({ ...toEcho, lanes: 2, pauseMs: 100, token: badToken }),
    badRegistry: startGrpcLoad({ ...toRegistry, lanes: 2, pauseMs: 100, token: badToken }),
  };
  const doors = webSocketUrls().map((webSocketUrl, index) => ({ webSocketUrl, grpcPort: ports[index] ?? 0 }));
  intruders = startIntruders(doors, bad);
}

function startFollowers(token: string): typeof followers {
  const ways = { WebSocket: byWebSocket(webSocketUrls(), token), Watch: byWatch(grpcPorts(), token) };
  const started = Object.entries(ways).flatMap(([way, connect]) =>
    [0, 1].map((replica) => ({ replica, connect, name: `${way} ${replica}` })),
  );
  return {
    staying: started.map(follow),
    hopping: started.map((each) => follow({ ...each, name: `hopping ${each.name}`, hopMs: HOP_MS })),
  };
}

const everybody = () => [...followers.staying, ...followers.hopping];
const stayingBy = (way: string) => followers.staying.filter(({ name }) => name.startsWith(way));

/** Waits until so many more calls have got their answers. */
async function answeredMore(count: number): Promise<void> {
  const { outcomes } = loads.echo;
  const enough = outcomes.length + count;
  await expect.poll(() => outcomes.length, { timeout: 60_000 }).toBeGreaterThan(enough);
}

/** The URLs of all services by their names, as a registry answers. */
async function listed({ current }: Supervised): Promise<Record<string, string>> {
  const answer = await current.call('GET', '/services');
  const services = answer.body?.['services'] as { service_name: string; service_url: string }[];
  return Object.fromEntries(services.map(({ service_name, service_url }) => [service_name, service_url]));
}

/** Services come, move and go until they are stopped. */
function change(prefix: string): Changes {
  return startChanges({ servers: deployment.registries.map(({ current }) => current.url), prefix, registered });
}

/**
 * Ends the changes; then the registries, and everybody who follows them, know what came of each.
 */
async function untilInStep(changes: Changes): Promise<void> {
  await changes.stop();
  expect(changes.made).toBeGreaterThan(20);
  const expected = Object.fromEntries(registered);
  for (const registry of deployment.registries) {
    await expect.poll(() => listed(registry), { timeout: IN_STEP_WITHIN_MS }).toEqual(expected);
  }
  for (const { name, services } of everybody()) {
    await expect
      .poll(() => Object.fromEntries(services), { timeout: IN_STEP_WITHIN_MS, message: name })
      .toEqual(expected);
  }
}

/**
 * Had by a gateway that was killed while the call was under way, or begun before the client had
 * heard of that.
 */
function diedWithGateway({ replica, sentAtMs, endedAtMs }: CallOutcome): boolean {
  return gatewayKills.some(
    (kill) => kill.replica === replica && sentAtMs <= kill.untilMs + NOTICED_WITHIN_MS && endedAtMs >= kill.fromMs,
  );
}

/** Under way when a registry was killed, or begun before its gateway had heard of that. */
function diedWithRegistry({ sentAtMs, endedAtMs }: CallOutcome): boolean {
  return registryKills.some(({ fromMs, untilMs }) => sentAtMs <= untilMs + NOTICED_WITHIN_MS && endedAtMs >= fromMs);
}

const answersOf = (door: string) =>
  new Set(intruders.attempts.filter((attempt) => attempt.door === door).map(({ answer }) => answer));

const failed = ({ outcomes }: GrpcLoad) => outcomes.filter(({ code }) => code !== status.OK);

/** Since the beginning, whatever has been killed: what holds at every moment. */
function check(): void {
  const lost = [...failed(loads.echo), ...failed(loads.registry)];
  expect(lost.filter(({ code }) => code !== status.UNAVAILABLE)).toEqual([]);
  expect(failed(loads.echo).filter((call) => !diedWithGateway(call))).toEqual([]);
  expect(failed(loads.registry).filter((call) => !diedWithGateway(call) && !diedWithRegistry(call))).toEqual([]);
  for (const { outcomes } of [loads.badEcho, loads.badRegistry]) {
    const answered = outcomes.filter((call) => call.code !== status.UNAVAILABLE || !diedWithGateway(call));
    expect(new Set(answered.map(({ code }) => code))).toEqual(new Set([status.UNAUTHENTICATED]));
  }
  expect(answersOf('websocket')).toEqual(new Set([401]));
  expect(answersOf('watch')).toEqual(new Set([status.UNAUTHENTICATED]));
  expect(echo.subjects).toEqual(new Set(['caller']));
}

/** Kills a registry while it is called and followed, and waits until it is back. */
async function killRegistry(replica: number): Promise<Kill> {
  await answeredMore(100);
  const registry = at(deployment.registries, replica);
  const { restarts } = registry;
  const kill = await killReplica(deployment.registries, replica, registryKills);
  await answeredMore(100);
  await untilBack(registry, restarts);
  return kill;
}

const endsOf = (all: readonly Follower[]) => all.flatMap(({ ends }) => ends);

describe('under load over gRPC and WebSockets, from clients of two gateways', () => {
  test.each([0, 1])(
    'gateway %i is killed: calls under way are lost, and nothing that anybody follows',
    async (replica) => {
      const changes = change(`gateway-${replica}`);
      await answeredMore(100);
      const gateway = at(deployment.gateways, replica);
      const { restarts } = gateway;
      const lostBefore = failed(loads.echo).length;
      const left = followers.staying.filter((follower) => follower.replica === replica);
      const before = left.map(({ resumed, resets }) => ({ resumed, resets }));
      expect(left.map(({ name }) => name.split(' ')[0])).toEqual(expect.arrayContaining(['WebSocket', 'Watch']));
      const { untilMs } = await killReplica(deployment.gateways, replica, gatewayKills);
      await answeredMore(100);
      await expect
        .poll(() => left.map(({ resumed }) => resumed), { timeout: 10_000 })
        .toEqual(before.map(({ resumed }) => resumed + 1));
      expect(left.map(({ resets }) => resets)).toEqual(before.map(({ resets }) => resets));
      for (const { name, ends } of left) {
        const code = name.startsWith('Watch') ? status.UNAVAILABLE : LOST;
        expect(ends.at(-1)).toEqual({ replica, code, atMs: expect.any(Number) });
        expect(ends.at(-1)?.atMs).toBeLessThan(untilMs + NOTICED_WITHIN_MS);
      }
      await untilBack(gateway, restarts);
      await answeredMore(100);
      await untilInStep(changes);
      check();
      const lost = failed(loads.echo).length - lostBefore;
      expect(lost).toBeGreaterThan(0);
      expect(lost).toBeLessThanOrEqual(LANES);
    },
  );

  test('the registries are killed one after the other: a watch ends with UNAVAILABLE and goes on at the other', async () => {
    const changes = change('registry');
    const webSockets = stayingBy('WebSocket');
    const before = endsOf(webSockets).length;
    const [first, second] = [await killRegistry(0), await killRegistry(1)];
    await answeredMore(100);
    await untilInStep(changes);
    check();
    expect(endsOf(webSockets).length).toBe(before);
    // Nobody was left at the first.
    for (const { ends } of stayingBy('Watch')) expect(ends.at(-1)?.atMs).toBeGreaterThan(second.fromMs);
    for (const end of endsOf(stayingBy('Watch')).filter(({ atMs }) => atMs > first.fromMs)) {
      expect(end.code).toBe(status.UNAVAILABLE);
      const { untilMs } = end.atMs > second.fromMs ? second : first;
      expect(end.atMs).toBeLessThan(untilMs + NOTICED_WITHIN_MS);
    }
  });

  test('Redis is killed: nobody notices', async () => {
    const { redis } = deployment;
    if (redis === undefined) throw new Error('There is no Redis');
    const changes = change('redis');
    const before = quiet();
    await redis.kill();
    await answeredMore(400);
    await redis.start();
    await answeredMore(100);
    await untilInStep(changes);
    check();
    expect(quiet()).toEqual(before);
  });

  test('the API server is killed: calls and streams go on, and what changes afterwards is heard of', async () => {
    const changes = change('api');
    await answeredMore(50);
    const before = quiet();
    await deployment.controlPlane.stopApiServer();
    const madeBefore = changes.made;
    await answeredMore(400);
    // Nothing can change: one may have been under way.
    expect(changes.made).toBeLessThanOrEqual(madeBefore + 1);
    await deployment.controlPlane.startApiServer();
    await expect.poll(() => changes.made, { timeout: IN_STEP_WITHIN_MS }).toBeGreaterThan(madeBefore + 20);
    await untilInStep(changes);
    check();
    expect(quiet()).toEqual(before);
  });

  test('all of that was put to the test', async () => {
    await stopAll();
    check();
    const counts = everybody().map(({ name, resumed, resets, ends }) => ({ name, resumed, resets, ends: ends.length }));
    const calls = Object.entries(loads).map(
      ([name, load]) => `${name} ${load.outcomes.length}, ${failed(load).length} not OK`,
    );
    console.info([...calls, ...counts.map((each) => JSON.stringify(each)), `intruders ${intruders.attempts.length}`]);
    for (const { resumed } of followers.hopping) expect(resumed).toBeGreaterThan(10);
    for (const { outcomes } of Object.values(loads)) {
      for (const replica of [0, 1]) {
        expect(outcomes.filter((call) => call.replica === replica).length).toBeGreaterThan(100);
      }
    }
    for (const door of ['websocket', 'watch']) {
      for (const replica of [0, 1]) {
        const attempts = intruders.attempts.filter((each) => each.door === door && each.replica === replica);
        expect(attempts.length).toBeGreaterThan(50);
      }
    }
  });
});

/**
 * What does not change while a store is unavailable: calls that failed, and connections that ended.
 */
function quiet(): object {
  return {
    echo: failed(loads.echo).length,
    registry: failed(loads.registry).length,
    ends: everybody().map(({ name, ends }) => `${name}: ${ends.length}`),
  };
}
