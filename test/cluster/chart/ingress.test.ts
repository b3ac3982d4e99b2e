import { setTimeout as delay } from 'node:timers/promises';
import { createRegistryClient } from '@rollcall/client/registry-client.ts';
import { waitUntil } from '@rollcall/local/wait.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EventStream, openEventStream, type StreamEvent } from '../../support/event-stream.ts';
import { type Answer, callApi } from '../../support/replica.ts';
import { noIngress } from '../support/namespace.ts';
import { openTraefik, type TestTraefik } from '../support/traefik.ts';
import { createInstallation, type Installation, noChart, type Values } from './support/installation.ts';

/** The ways from outside to the registry, each of which is there alone while it is tested. */
const ways = [
  {
    kind: 'Ingress',
    values: ({ ingressClass }: TestTraefik): Values => ({ ingress: { enabled: true, className: ingressClass } }),
    // Where clients have to go, as the controller says.
    status: '{.status.loadBalancer.ingress[*].ip}',
    expectedStatus: ({ hostUrl }: TestTraefik) => new URL(hostUrl ?? '').hostname,
  },
  {
    kind: 'HTTPRoute',
    values: ({ gateway }: TestTraefik): Values => ({ httpRoute: { enabled: true, parentRefs: [gateway] } }),
    status: '{range .status.parents[*].conditions[*]}{.type}={.status} {end}',
    expectedStatus: () => 'Accepted=True ResolvedRefs=True ',
  },
] as const;

const POLL = { timeout: 60_000, interval: 200 };

/** Longer than the time after which a proxy may take a silent connection for a dead one, were it not told otherwise. */
const QUIET_MS = 20_000;

describe.skipIf(noIngress || noChart)('from outside the cluster', () => {
  let traefik: TestTraefik;
  let chart: Installation;
  let url: string;
  const resources = new AsyncDisposableStack();

  beforeAll(async () => {
    traefik = resources.use(await openTraefik());
    chart = resources.use(await createInstallation());
    await chart.install();
    url = traefik.hostUrl ?? '';
  }, 600_000);
  afterAll(() => resources.disposeAsync());

  const call = (method: string, path: string, body?: unknown): Promise<Answer> => callApi(url, { method, path, body });
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

  describe.each(ways)("by the chart's $kind", ({ kind, values, status, expectedStatus }) => {
    beforeAll(async () => {
      await chart.upgrade({ processes: { registry: values(traefik) } });
      await untilHealth(200);
    });
    afterAll(async () => {
      await chart.upgrade();
      await untilHealth(404);
    });

    test('which the controller has accepted', async () => {
      const get = ['get', kind, 'rollcall-registry', `--output=jsonpath=${status}`];
      await expect.poll(() => chart.namespace.kubectl(...get), POLL).toBe(expectedStatus(traefik));
    });

    test('services register, send heartbeats, are found, and leave', async () => {
      const name = `shop-${kind.toLowerCase()}`;
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

    test('the client library works', async () => {
      const name = `library-${kind.toLowerCase()}`;
      const client = createRegistryClient({ servers: [url] });
      await client.register({ service_name: name, service_url: 'http://10.0.0.2', capabilities: [] });
      await client.heartbeat(name);
      expect(await client.getService(name)).toMatchObject({ service_url: 'http://10.0.0.2' });
      await client.deregister(name);
    });

    test('changes arrive as they happen, also after a silence, and the stream is resumed at any replica', async () => {
      const name = `watched-${kind.toLowerCase()}`;
      const watch = `${url}/api/v1/services/watch`;
      let lastEventId: string | undefined;
      {
        await using stream = await openEventStream(watch);
        await stream.until('synced');
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
        await using resumed = await openEventStream(watch, lastEventId);
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
    ] as const)("the answer to $what is the API's own", async ({ call: [method, path, body], status, error }) => {
      const answer = await call(method, path, body);
      expect(answer).toMatchObject({ status, body: { error, message: expect.any(String) } });
      expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
    });

    test.each(['/', '/livez', '/readyz', '/metrics', '/api/v1x'])(
      '%s is none of the API and not reached',
      async (path) => {
        const response = await fetch(`${url}${path}`);
        expect({ status: response.status, type: response.headers.get('content-type') }).toEqual({
          status: 404,
          type: NOT_OURS,
        });
      },
    );
  });
});

/** Of the router's answer where nothing is behind a path. */
const NOT_OURS = 'text/plain; charset=utf-8';

/** The next event about a service. */
async function nextOf(stream: EventStream, name: string): Promise<StreamEvent> {
  for (let event = await stream.next(); ; event = await stream.next()) {
    if (event.data['service_name'] === name) return event;
  }
}
