import { setTimeout as delay } from 'node:timers/promises';
import { createRegistryClient } from '@rollcall/client/registry-client.ts';
import { waitUntil } from '@rollcall/local/wait.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect, type ServerMessage } from '../../gateway/websocket-client.ts';
import { connectGrpc } from '../../registry/grpc-client.ts';
import { type EventStream, openEventStream, type StreamEvent } from '../../support/event-stream.ts';
import { type Answer, callApi } from '../../support/replica.ts';
import { type ClusterNamespace, createClusterNamespace, noIngress, sharedCluster } from '../support/namespace.ts';
import { openTraefik, type TestTraefik } from '../support/traefik.ts';
import { openGateway } from './support/access.ts';
import { createApiClient, tokenOf } from './support/api-client.ts';
import { createInstallation, type Installation, noChart, type Values } from './support/installation.ts';
import { memberPod } from './support/member.ts';

/** Of the router's answer where nothing is behind a path. */
const NOT_OURS = 'text/plain; charset=utf-8';

/** The ways from outside to the gateway, each of which is there alone while it is tested. */
const ways = [
  {
    kind: 'Ingress',
    values: ({ ingressClass }: TestTraefik): Values => ({ ingress: { enabled: true, className: ingressClass } }),
    // Where clients have to go, as the controller says.
    status: '{.status.loadBalancer.ingress[*].ip}',
    expectedStatus: ({ hostUrl }: TestTraefik) => new URL(hostUrl ?? '').hostname,
    elsewhere: { status: 404, type: NOT_OURS },
  },
  {
    kind: 'HTTPRoute',
    values: ({ gateway }: TestTraefik): Values => ({
      httpRoute: { enabled: true, parentRefs: [gateway] },
      grpcRoute: { enabled: true, parentRefs: [gateway] },
    }),
    status: '{range .status.parents[*].conditions[*]}{.type}={.status} {end}',
    expectedStatus: () => 'Accepted=True ResolvedRefs=True ',
    // The GRPCRoute is for the rest, and its port for gRPC alone.
    elsewhere: { status: 405, type: 'application/json; charset=utf-8' },
  },
] as const;

const POLL = { timeout: 60_000, interval: 200 };

/**
 * Longer than the time after which a proxy may take a silent connection for a dead one, were there
 * no pings.
 */
const QUIET_MS = 20_000;

describe.skipIf(noIngress || noChart)('from outside the cluster', () => {
  let traefik: TestTraefik;
  let chart: Installation;
  let users: ClusterNamespace;
  let url: string;
  let token: string;
  let values: Values;
  const resources = new AsyncDisposableStack();

  beforeAll(async () => {
    traefik = resources.use(await openTraefik());
    users = resources.use(await createClusterNamespace());
    chart = resources.use(await createInstallation({ crds: false }));
    // Where those run that register by themselves.
    values = { registry: { namespaces: [users.name] } };
    await chart.install(values);
    url = traefik.hostUrl ?? '';
    const client = await createApiClient(chart, 'buyer');
    await using gateway = await openGateway(chart.namespace);
    token = await tokenOf(gateway.url, client);
  }, 600_000);
  afterAll(() => resources.disposeAsync());

  /** Of the registry's API, below `/api/v1/registry`, as a client. */
  const call = (method: string, path: string, body?: unknown): Promise<Answer> =>
    callApi(url, { method, path: `/registry${path}`, body, token });
  const register = (name: string): Promise<Answer> =>
    call('POST', '/services/register', { service_name: name, service_url: 'http://10.0.0.1', capabilities: ['rest'] });

  const untilHealth = (status: number): Promise<void> =>
    waitUntil(`/health answers ${status}`, async () => (await call('GET', '/health')).status === status, {
      timeoutMs: POLL.timeout,
    });

  test('there is no way in that the values do not ask for', async () => {
    const { status, headers } = await call('GET', '/services');
    expect({ status, type: headers.get('content-type') }).toEqual({ status: 404, type: NOT_OURS });
  });

  describe.each(ways)("by the chart's $kind", ({ kind, values: entrance, status, expectedStatus, elsewhere }) => {
    beforeAll(async () => {
      const gateway = { trustedProxies: ['10.244.0.0/16'] };
      await chart.upgrade({ ...values, gateway, processes: { gateway: entrance(traefik) } });
      await untilHealth(200);
    });
    afterAll(async () => {
      await chart.upgrade(values);
      await untilHealth(404);
    });

    test('which the controller has accepted', async () => {
      const get = ['get', kind, 'rollcall-gateway', `--output=jsonpath=${status}`];
      await expect.poll(() => chart.namespace.kubectl(...get), POLL).toBe(expectedStatus(traefik));
    });

    test('services register, send heartbeats, are found, and leave', async () => {
      const name = `shop-${kind.toLowerCase()}`;
      // The gateways are new, and on a busy node its names are not there at once: as clients do, again.
      await expect.poll(() => register(name), POLL).toMatchObject({ status: 200 });
      const registered = await register(name);
      expect(registered).toMatchObject({ status: 200, body: { service_name: name, ttl: 60 } });
      expect(await call('POST', `/services/${name}/heartbeat`)).toMatchObject({ status: 200 });
      // Any replica may answer.
      for (let times = 0; times < 6; times += 1) {
        expect(await call('GET', `/services/${name}`)).toMatchObject({
          status: 200,
          body: { service_id: registered.body?.['service_id'], capabilities: ['rest'] },
        });
      }
      const listed = async (): Promise<unknown> => (await call('GET', '/services?capability=rest')).body?.['services'];
      const one = expect.objectContaining({ service_name: name });
      await expect.poll(listed, POLL).toEqual(expect.arrayContaining([one]));
      const seen = await chart.namespace.kubectl('get', 'serviceregistration', name, '--output=jsonpath={.spec.url}');
      expect(seen).toBe('http://10.0.0.1');
      expect(await call('DELETE', `/services/${name}`)).toMatchObject({ status: 200 });
      await expect.poll(async () => (await call('GET', `/services/${name}`)).status, POLL).toBe(404);
    });

    test('nobody is admitted without a token, and whoever has one sees the limits', async () => {
      const stranger = await callApi(url, { method: 'GET', path: '/registry/services' });
      expect(stranger).toMatchObject({ status: 401, body: { error: { code: 'UNAUTHENTICATED' } } });
      const { status, headers } = await call('GET', '/services');
      expect(status).toBe(200);
      expect(headers.get('x-ratelimit-limit')).toBe('1000');
      expect(Number(headers.get('x-ratelimit-remaining'))).toBeLessThan(1000);
      expect(headers.get('ratelimit-policy')).toContain('"premium"');
    });

    test('the keys by which identities are verified are there for everybody', async () => {
      const answer = await fetch(`${url}/.well-known/jwks.json`);
      expect(answer.status).toBe(200);
      expect(answer.headers.get('content-type')).toMatch(/^application\/jwk-set\+json/);
      const { keys } = (await answer.json()) as { keys: { kid: string; d?: string }[] };
      const [head = ''] = token.split('.');
      const { kid } = JSON.parse(Buffer.from(head, 'base64url').toString()) as { kid: string };
      expect(keys).toContainEqual(expect.objectContaining({ kid, alg: 'ES256' }));
      expect(keys.filter(({ d }) => d !== undefined)).toEqual([]);
    });

    test('a program that has registered itself is called', async () => {
      const name = `member-${kind.toLowerCase()}`;
      await users.apply(memberPod(name, `${sharedCluster().appRepository}:v1`, chart.registryUrl));
      await users.kubectl('wait', '--for=condition=Ready', `pod/${name}`, '--timeout=120s');
      const asked = async () => {
        const answer = await fetch(`${url}/api/v1/${name}/orders?open=1`, {
          headers: { authorization: `Bearer ${token}` },
        });
        return `${answer.status} ${await answer.text()}`;
      };
      // The gateway learns of it a moment later.
      await expect.poll(asked, POLL).toBe(`200 ${name} /api/v1/orders?open=1`);
      await users.kubectl('delete', 'pod', name);
    });

    test('events come over the WebSocket', async () => {
      const name = `reported-${kind.toLowerCase()}`;
      await using socket = await connect(`${url.replace(/^http/, 'ws')}/api/ws`, token);
      socket.send({ type: 'subscribe', id: '1', channel: 'registrations' });
      await socket.until(({ type }) => type === 'subscribed', POLL.timeout);
      await register(name);
      const isOfIt = ({ payload }: ServerMessage) => JSON.stringify(payload ?? {}).includes(name);
      const heard = await socket.until(isOfIt, POLL.timeout);
      expect(heard.at(-1)).toMatchObject({ channel: 'registrations' });
      await call('DELETE', `/services/${name}`);
    });

    test.runIf(kind === 'HTTPRoute')('gRPC calls come by the GRPCRoute', async () => {
      using stranger = connectGrpc(new URL(url).host);
      using client = connectGrpc(new URL(url).host, token);
      const list = () => client.call('List', {});
      await expect.poll(async () => (await list()).code, POLL).toBe(0);
      const { message } = await list();
      expect(message).toMatchObject({
        services: expect.arrayContaining([expect.objectContaining({ serviceName: 'rollcall-registry' })]),
      });
      const { code, details } = await stranger.call('List', {});
      expect({ code, details }).toEqual({ code: 16, details: expect.stringMatching(/token/i) });
    });

    test('the client library works', async () => {
      const name = `library-${kind.toLowerCase()}`;
      const client = createRegistryClient({ servers: `${url}/api/v1/registry`, token });
      await client.register({ service_name: name, service_url: 'http://10.0.0.2', capabilities: [] });
      await client.heartbeat(name);
      expect(await client.getService(name)).toMatchObject({ service_url: 'http://10.0.0.2' });
      await client.unregister(name);
    });

    test('changes arrive as they happen, also after a silence, and the stream is resumed at any replica', async () => {
      const name = `watched-${kind.toLowerCase()}`;
      const watch = `${url}/api/v1/registry/services/watch`;
      let lastEventId: string | undefined;
      {
        await using stream = await openEventStream(watch, undefined, token);
        await stream.until('synced', POLL.timeout);
        await register(name);
        const added = await nextOf(stream, name);
        expect(added).toMatchObject({ type: 'added', data: { service_name: name } });
        lastEventId = added.id;
        await delay(QUIET_MS);
        await call('DELETE', `/services/${name}`);
        expect(await nextOf(stream, name)).toMatchObject({ type: 'removed' });
      }
      // Often enough to have met both.
      for (let times = 0; times < 4; times += 1) {
        await using resumed = await openEventStream(watch, lastEventId, token);
        expect(await nextOf(resumed, name)).toMatchObject({ type: 'removed' });
      }
    });

    test.each([
      { what: 'an unknown service', call: ['GET', '/services/nobody'], status: 404, error: 'Service not found' },
      {
        what: 'a heartbeat of nobody',
        call: ['POST', '/services/nobody/heartbeat'],
        status: 400,
        error: 'Service not found',
      },
      {
        what: 'a name that is none',
        call: ['POST', '/services/register', { service_name: '', service_url: 'http://10.0.0.1' }],
        status: 400,
        error: 'Invalid service name',
      },
      {
        what: 'a URL that is none',
        call: ['POST', '/services/register', { service_name: 'shop', service_url: 'ftp://shop' }],
        status: 400,
        error: 'Invalid service URL',
      },
      { what: 'a path of nothing', call: ['GET', '/no-such-path'], status: 404, error: 'Not found' },
    ] as const)("the answer to $what is the registry's own", async ({ call: [method, path, body], status, error }) => {
      const answer = await call(method, path, body);
      expect(answer).toMatchObject({ status, body: { error, message: expect.any(String) } });
      expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
    });

    test('the answer to a path of no service is the gateway’s own', async () => {
      const answer = await callApi(url, { method: 'GET', path: '/nobody/orders', token });
      expect(answer).toMatchObject({ status: 404, body: { error: { code: 'SERVICE_NOT_FOUND' } } });
    });

    test.each([
      '/',
      '/livez',
      '/readyz',
      '/metrics',
      '/apix',
      '/.well-known',
      '/.well-known/jwks.json/x',
      '/.well-known/jwks.jsonx',
      '/.well-known/openid-configuration',
    ])('%s is none of the API and not reached', async (path) => {
      const response = await fetch(`${url}${path}`);
      expect({ status: response.status, type: response.headers.get('content-type') }).toEqual(elsewhere);
    });
  });
});

/** The next event about a service. */
async function nextOf(stream: EventStream, name: string): Promise<StreamEvent> {
  for (let event = await stream.next(POLL.timeout); ; event = await stream.next(POLL.timeout)) {
    if (event.data['service_name'] === name) return event;
  }
}
