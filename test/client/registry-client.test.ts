import { createHmac } from 'node:crypto';
import { createRegistryClient, type RegistryClient } from '@rollcall/client/registry-client.ts';
import { describe, expect, it } from 'vitest';
import { type ContractServer, freePort, startContractServer } from './contract-server.ts';

const clientOf = (server: ContractServer, timeoutMs = 1000) => createRegistryClient({ servers: server.url, timeoutMs });

interface EndpointExample {
  readonly call: (client: RegistryClient) => Promise<unknown>;
  readonly what: string;
  readonly body?: unknown;
}

const release = { service_name: 'shop', version: '1.4.0' };

/** The calls of services and webhooks; jobs.test.ts has those of jobs. */
const endpoints: readonly EndpointExample[] = [
  {
    call: (client) => client.register({ service_name: 'shop', service_url: 'http://shop', capabilities: ['rest'] }),
    what: 'POST /services/register',
    body: { service_name: 'shop', service_url: 'http://shop', capabilities: ['rest'] },
  },
  { call: (client) => client.listServices(), what: 'GET /services' },
  {
    call: (client) => client.listServices({ capability: 'grpc', prefix: 'a&b' }),
    what: 'GET /services?capability=grpc&prefix=a%26b',
  },
  { call: (client) => client.getService('shop'), what: 'GET /services/shop' },
  { call: (client) => client.getService('Straße/1?'), what: 'GET /services/Stra%C3%9Fe%2F1%3F' },
  { call: (client) => client.unregister('shop'), what: 'DELETE /services/shop' },
  { call: (client) => client.heartbeat('shop'), what: 'POST /services/shop/heartbeat' },
  {
    call: (client) => client.reportComposition('shop', { status: 'composed', message: 'Well' }),
    what: 'POST /services/shop/composition',
    body: { status: 'composed', message: 'Well' },
  },
  { call: (client) => client.serviceHistory('shop', { limit: 5 }), what: 'GET /updates/history/shop?limit=5' },
  { call: (client) => client.history(), what: 'GET /updates/history' },
  { call: (client) => client.statistics(), what: 'GET /updates/statistics' },
  {
    call: (client) => client.reportHealth({ service_name: 'shop', status: 'healthy' }),
    what: 'POST /webhooks/health',
    body: { service_name: 'shop', status: 'healthy' },
  },
  {
    call: (client) => client.reportLifecycle({ service_name: 'shop', event: 'started' }),
    what: 'POST /webhooks/lifecycle',
    body: { service_name: 'shop', event: 'started' },
  },
  {
    call: (client) => client.deploy({ ...release, strategy: 'canary' }),
    what: 'POST /webhooks/deploy',
    body: { ...release, strategy: 'canary' },
  },
  { call: (client) => client.rollBack(release), what: 'POST /webhooks/rollback', body: release },
];

describe('registry client', () => {
  it.each(endpoints)('asks $what and returns the answer as it is', async ({ call, what, body }) => {
    await using server = await startContractServer();
    const answer = { any: ['thing'] };
    server.misbehave('', { status: 200, body: answer });
    expect(await call(clientOf(server))).toEqual(answer);
    expect(server.calls).toHaveLength(1);
    expect(server.calls[0]?.what).toBe(what);
    expect(server.calls[0]?.body).toBe(body === undefined ? '' : JSON.stringify(body));
    expect(server.calls[0]?.headers['content-type']).toBe(body === undefined ? undefined : 'application/json');
  });

  it.each(endpoints)('passes on the refusal of $what', async ({ call }) => {
    await using server = await startContractServer();
    server.misbehave('', { status: 400, body: { error: 'Invalid request', message: 'no' } });
    await expect(call(clientOf(server))).rejects.toMatchObject({
      name: 'RegistryError',
      status: 400,
      error: 'Invalid request',
      message: 'no',
    });
  });

  it.each([
    { what: 'text', body: 'hello' },
    { what: 'a JSON number', body: 7 },
    { what: 'JSON null', body: null },
  ])('says so when it is answered with $what', async ({ body }) => {
    await using server = await startContractServer();
    server.misbehave('', { status: 200, body });
    await expect(clientOf(server).listServices()).rejects.toMatchObject({ error: 'Unexpected answer' });
  });

  it('does not read the stream that a registry may answer with to a look-up of the name watch', async () => {
    await using server = await startContractServer();
    await expect(clientOf(server).getService('watch')).rejects.toMatchObject({ error: 'Unexpected answer' });
  });

  it.each(['', '.', '..'])('sends nothing for the name %j', async (name) => {
    await using server = await startContractServer();
    const client = clientOf(server);
    for (const call of [client.getService, client.unregister, client.heartbeat, client.serviceHistory]) {
      await expect(call(name)).rejects.toMatchObject({ status: 400, error: 'Invalid service name' });
    }
    expect(server.calls).toEqual([]);
  });

  it('signs webhooks with the secret', async () => {
    await using server = await startContractServer();
    server.misbehave('', { status: 200, body: {} });
    await clientOf(server).deploy(release, { secret: 'top secret' });
    const headers = server.calls[0]?.headers ?? {};
    const signed = `${String(headers['x-webhook-timestamp'])}./api/v1/webhooks/deploy.${JSON.stringify(release)}`;
    const mac = createHmac('sha256', 'top secret').update(signed).digest('hex');
    expect(headers['x-webhook-signature']).toBe(`sha256=${mac}`);
    expect(server.calls[0]?.body).not.toContain('top secret');
  });

  it('says that the registry is unreachable, and why', async () => {
    const port = await freePort();
    const client = createRegistryClient({ servers: `http://127.0.0.1:${port}` });
    await expect(client.listServices()).rejects.toMatchObject({
      status: undefined,
      error: 'Registry unreachable',
      message: expect.stringContaining('ECONNREFUSED'),
      server: `http://127.0.0.1:${port}`,
    });
  });

  it('waits for an answer no longer than the option says', async () => {
    await using server = await startContractServer();
    server.misbehave('', 'hang');
    await expect(clientOf(server, 100).listServices()).rejects.toMatchObject({
      status: undefined,
      message: expect.stringContaining('aborted due to timeout'),
    });
  });

  it('can be called off', async () => {
    await using server = await startContractServer();
    server.misbehave('', 'hang');
    const signal = AbortSignal.timeout(50);
    await expect(clientOf(server, 5000).listServices({}, { signal })).rejects.toMatchObject({ name: 'TimeoutError' });
    await expect(clientOf(server).listServices({}, { signal })).rejects.toMatchObject({ name: 'TimeoutError' });
    expect(server.calls).toHaveLength(1);
  });
});

describe('with two registries', () => {
  it.each([
    { how: 'cut' as const, call: 'listServices', reachesSecond: true },
    { how: { status: 503, body: {} }, call: 'listServices', reachesSecond: true },
    { how: { status: 500, body: {} }, call: 'listServices', reachesSecond: false },
    { how: 'cut' as const, call: 'deploy', reachesSecond: false },
    { how: { status: 503, body: {} }, call: 'deploy', reachesSecond: false },
  ])('$call goes on to the second after $how: $reachesSecond', async ({ how, call, reachesSecond }) => {
    await using first = await startContractServer();
    await using second = await startContractServer();
    first.misbehave('', how);
    second.misbehave('', { status: 200, body: { from: 'second' } });
    const client = createRegistryClient({ servers: [first.url, second.url] });
    const answer = call === 'deploy' ? client.deploy(release) : client.listServices();
    const [outcome] = await Promise.allSettled([answer]);
    expect(outcome.status).toBe(reachesSecond ? 'fulfilled' : 'rejected');
    expect(second.calls).toHaveLength(reachesSecond ? 1 : 0);
  });

  it('sends even what must not be repeated to the second when the first refuses connections', async () => {
    await using second = await startContractServer();
    second.misbehave('', { status: 200, body: { from: 'second' } });
    const client = createRegistryClient({ servers: [`http://127.0.0.1:${await freePort()}`, second.url] });
    expect(await client.deploy(release)).toEqual({ from: 'second' });
  });

  it('stays with the one that answered', async () => {
    await using first = await startContractServer();
    await using second = await startContractServer();
    first.misbehave('', 'cut');
    const client = createRegistryClient({ servers: [first.url, second.url] });
    await client.listServices();
    first.misbehave('', undefined);
    await client.listServices();
    expect([first.calls.length, second.calls.length]).toEqual([1, 2]);
  });
});
