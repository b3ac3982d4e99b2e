import { type Directory, type DiscoverOptions, discover } from '@rollcall/client/discovery.ts';
import { describe, expect, it, vi } from 'vitest';
import { type ContractServer, freePort, startContractServer } from './contract-server.ts';

function discoverFrom(server: ContractServer, options: Partial<DiscoverOptions> = {}): Directory {
  return discover({ servers: server.url, retry: { baseMs: 10, maxMs: 50 }, timeoutMs: 2000, ...options });
}

const names = (directory: Directory) => directory.list().map((service) => service.service_name);

/** The changes that the directory reports, in order, as short sentences. */
function changesOf(directory: Directory): string[] {
  const changes: string[] = [];
  directory.on('change', ({ type, service }) => changes.push(`${type} ${service.service_name}`));
  return changes;
}

const settle = (ms = 100) => new Promise((resolve) => setTimeout(resolve, ms));

describe('discover', () => {
  it('knows everything that is registered once it is ready', async () => {
    await using server = await startContractServer();
    server.put('shop', { capabilities: ['rest'] });
    server.put('shop-admin', { capabilities: ['rest', 'graphql'] });
    server.put('cart', { capabilities: ['grpc'] });
    using directory = discoverFrom(server);
    expect(directory.state()).toBe('connecting');
    await directory.ready;
    expect(directory.state()).toBe('live');
    expect(names(directory)).toEqual(['cart', 'shop', 'shop-admin']);
    expect(directory.get('shop')).toEqual(server.services.get('shop'));
    expect(directory.find('ghost')).toBeUndefined();
    expect(() => directory.get('ghost')).toThrow(expect.objectContaining({ status: 404, error: 'Service not found' }));
    expect(directory.list({ capability: 'rest' })).toHaveLength(2);
    expect(directory.list({ prefix: 'shop-' })).toHaveLength(1);
    expect(directory.list({ capability: 'grpc', prefix: 'shop' })).toEqual([]);
  });

  it('follows changes', async () => {
    await using server = await startContractServer();
    server.put('shop');
    server.put('cart');
    using directory = discoverFrom(server);
    await directory.ready;
    const changes = changesOf(directory);
    server.put('pay');
    server.put('shop', { url: 'http://elsewhere' });
    server.expire('cart');
    server.remove('pay');
    await vi.waitFor(() => expect(changes).toHaveLength(4), { timeout: 30_000 });
    expect(changes).toEqual(['added pay', 'modified shop', 'expired cart', 'removed pay']);
    expect(directory.get('shop').service_url).toBe('http://elsewhere');
  });

  it('reads events that arrive a byte at a time, with characters of several bytes', async () => {
    await using server = await startContractServer();
    using directory = discoverFrom(server);
    await directory.ready;
    const service = { ...server.put('template'), service_name: 'Straße-店' };
    for (const byte of Buffer.from(`id: 999\r\nevent: added\r\ndata: ${JSON.stringify(service)}\r\n\r\n`)) {
      server.writeToWatches(Uint8Array.of(byte));
      if (byte > 127) await settle(5);
    }
    await vi.waitFor(() => expect(directory.find('Straße-店')).toEqual(service), { timeout: 30_000 });
  });

  it('waits for a registry that starts later', async () => {
    const port = await freePort();
    using directory = discover({ servers: `http://127.0.0.1:${port}`, retry: { baseMs: 10, maxMs: 50 } });
    const disconnected = vi.fn<() => void>();
    directory.on('disconnected', disconnected);
    await vi.waitFor(() => expect(disconnected).toHaveBeenCalled(), { timeout: 30_000 });
    expect(directory.state()).toBe('connecting');
    await using server = await startContractServer({ port });
    server.put('shop');
    await vi.waitFor(() => expect(names(directory)).toEqual(['shop']), { timeout: 30_000 });
  });

  it('serves what it knew while the registry is down, and reports only differences when it is back', async () => {
    const port = await freePort();
    const first = await startContractServer({ port });
    const shop = first.put('shop');
    first.put('cart');
    using directory = discoverFrom(first);
    await directory.ready;
    const changes = changesOf(directory);
    await first[Symbol.asyncDispose]();
    await vi.waitFor(() => expect(directory.state()).toBe('stale'), { timeout: 30_000 });
    expect(names(directory)).toEqual(['cart', 'shop']);
    await using second = await startContractServer({ port });
    second.put('shop', { url: shop.service_url });
    second.put('pay');
    second.forgetEvents();
    await vi.waitFor(() => expect(directory.state()).toBe('live'), { timeout: 30_000 });
    // The restarted registry of this test gives the shop a new id: a change; it never vanishes,
    // though.
    expect(new Set(changes)).toEqual(new Set(['modified shop', 'added pay', 'removed cart']));
    expect(names(directory)).toEqual(['pay', 'shop']);
  });

  it('resumes after the last event when the connection ends', async () => {
    await using server = await startContractServer();
    server.put('shop');
    using directory = discoverFrom(server, { retry: { baseMs: 2000, maxMs: 2000 } });
    await directory.ready;
    const changes = changesOf(directory);
    server.put('cart');
    await vi.waitFor(() => expect(changes).toEqual(['added cart']), { timeout: 30_000 });
    server.endWatches();
    await vi.waitFor(() => expect(directory.state()).toBe('stale'), { timeout: 30_000 });
    server.put('pay');
    server.remove('shop');
    await vi.waitFor(() => expect(directory.state()).toBe('live'), { timeout: 30_000 });
    await vi.waitFor(() => expect(changes).toEqual(['added cart', 'added pay', 'removed shop']), { timeout: 30_000 });
    const ids = server.callsOf('GET /services/watch').map(({ headers }) => headers['last-event-id']);
    expect(ids).toEqual([undefined, '102']);
  });

  it('begins anew when the registry can no longer resume', async () => {
    await using server = await startContractServer();
    server.put('shop');
    server.put('cart');
    using directory = discoverFrom(server, { retry: { baseMs: 2000, maxMs: 2000 } });
    await directory.ready;
    const changes = changesOf(directory);
    server.endWatches();
    await vi.waitFor(() => expect(directory.state()).toBe('stale'), { timeout: 30_000 });
    server.remove('cart');
    server.put('pay');
    server.forgetEvents();
    await vi.waitFor(() => expect(directory.state()).toBe('live'), { timeout: 30_000 });
    expect(changes).toEqual(['added pay', 'removed cart']);
    expect(names(directory)).toEqual(['pay', 'shop']);
  });

  it('notices a connection that has died in silence, and turns to the next registry', async () => {
    await using silent = await startContractServer();
    await using healthy = await startContractServer();
    silent.put('shop');
    healthy.put('shop');
    using directory = discoverFrom(silent, { servers: [silent.url, healthy.url], silenceMs: 200 });
    const reasons: string[] = [];
    directory.on('disconnected', ({ error }) => reasons.push(String(error)));
    await directory.ready;
    await vi.waitFor(() => expect(healthy.watches()).toBe(1), { timeout: 30_000 });
    expect(silent.watches()).toBe(0);
    expect(reasons[0]).toContain('silent for 200 ms');
  });

  it('counts comments as signs of life', async () => {
    await using server = await startContractServer();
    using directory = discoverFrom(server, { silenceMs: 4000 });
    await directory.ready;
    const comments = setInterval(() => server.writeToWatches(':\n\n'), 50);
    await settle(6000);
    clearInterval(comments);
    expect(server.callsOf('GET /services/watch')).toHaveLength(1);
    expect(directory.state()).toBe('live');
  });

  it.each([
    { what: 'an answer that is no event stream', how: { status: 200, body: {} } },
    { what: 'an error', how: { status: 503, body: { error: 'Store is not available', message: 'x' } } },
    { what: 'no answer', how: 'hang' as const },
  ])('connects again after $what', async ({ how }) => {
    await using server = await startContractServer();
    server.misbehave('GET /services/watch', how);
    using directory = discoverFrom(server);
    const disconnected = vi.fn<() => void>();
    directory.on('disconnected', disconnected);
    await vi.waitFor(() => expect(disconnected.mock.calls.length).toBeGreaterThan(1), { timeout: 30_000 });
    server.misbehave('GET /services/watch', undefined);
    await directory.ready;
  });

  it('backs off from a registry that ends every watch at once', async () => {
    await using server = await startContractServer();
    using directory = discoverFrom(server, { retry: { baseMs: 40, maxMs: 1000 } });
    directory.on('synced', () => server.endWatches());
    await settle(600);
    expect(server.callsOf('GET /services/watch').length).toBeLessThan(8);
  });

  it('skips what it does not understand and goes on', async () => {
    await using server = await startContractServer();
    using directory = discoverFrom(server);
    await directory.ready;
    server.writeToWatches('event: added\ndata: {"service_name":7}\n\nevent: news\ndata: x\n\nnonsense\n\n');
    server.put('shop');
    await vi.waitFor(() => expect(names(directory)).toEqual(['shop']), { timeout: 30_000 });
    expect(server.callsOf('GET /services/watch')).toHaveLength(1);
  });

  it('gives a stream up that sends an endless event', async () => {
    await using server = await startContractServer();
    using directory = discoverFrom(server);
    await directory.ready;
    server.writeToWatches(`data: ${'x'.repeat(2_000_000)}`);
    await vi.waitFor(() => expect(server.callsOf('GET /services/watch').length).toBeGreaterThan(1), {
      timeout: 30_000,
    });
    await vi.waitFor(() => expect(directory.state()).toBe('live'), { timeout: 30_000 });
  });

  it('ends the connection when closed, and stays readable', async () => {
    await using server = await startContractServer();
    server.put('shop');
    const directory = discoverFrom(server);
    await directory.ready;
    directory.close();
    await vi.waitFor(() => expect(server.watches()).toBe(0), { timeout: 30_000 });
    expect(names(directory)).toEqual(['shop']);
    await settle();
    expect(server.callsOf('GET /services/watch')).toHaveLength(1);
  });

  it('closed before it was ready says so', async () => {
    const directory = discover({ servers: `http://127.0.0.1:${await freePort()}` });
    directory.close();
    await expect(directory.ready).rejects.toThrow('closed');
  });
});
