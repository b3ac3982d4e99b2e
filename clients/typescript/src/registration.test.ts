import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { register } from './registration.ts';

const start = Date.UTC(2026, 10, 20);

/**
 * A registry of before names had instances, which ignores ids, until it is upgraded. It knows the
 * service without an id then, as its program registered there.
 */
function registryToUpgrade() {
  const calls: string[] = [];
  const known = new Set<string>();
  let isUpgraded = false;
  const fetch = async (address: unknown, { body }: { readonly body?: unknown } = {}): Promise<Response> => {
    const url = new URL(String(address));
    const isHeartbeat = url.pathname.endsWith('/heartbeat');
    const asked: string = isHeartbeat ? url.searchParams.get('instance_id') : JSON.parse(String(body)).instance_id;
    const id = isUpgraded ? asked : undefined;
    calls.push(`${isHeartbeat ? 'heartbeat' : 'register'} ${id}`);
    if (!isHeartbeat) known.add(String(id));
    if (!known.has(String(id))) return Response.json({ error: 'Service not registered' }, { status: 400 });
    const service = { service_name: 'shop', service_url: 'http://shop', service_id: '6d1c', ttl: 60 };
    return Response.json(id === undefined ? service : { ...service, instance_id: id });
  };
  return { fetch, calls, upgrade: () => void (isUpgraded = true) };
}

/** A registry that answers at once, as the clock of the test has it. */
function registryInMemory() {
  const heartbeatsAt: number[] = [];
  let isUp = true;
  const fetch = async (url: unknown): Promise<Response> => {
    const isHeartbeat = new URL(String(url)).pathname.endsWith('/heartbeat');
    if (isHeartbeat) heartbeatsAt.push(performance.now());
    if (!isUp) throw new TypeError('fetch failed');
    return Response.json({
      service_name: 'shop',
      service_url: 'http://shop',
      service_id: '6d1c',
      ttl: 60,
      message: 'ok',
    });
  };
  return {
    fetch,
    heartbeatsAt,
    setUp(up: boolean) {
      isUp = up;
    },
  };
}

const gaps = (times: readonly number[]) => times.slice(1).map((time, index) => time - (times[index] ?? 0));

describe('the heartbeats of a registration', () => {
  beforeEach(() => void vi.useFakeTimers({ now: start, toFake: ['setTimeout', 'clearTimeout', 'performance'] }));
  afterEach(() => void vi.useRealTimers());

  it('come every 27 to 33 s, not in step', async () => {
    const registry = registryInMemory();
    register({ servers: 'http://registry', name: 'shop', url: 'http://shop', fetch: registry.fetch });
    await vi.advanceTimersByTimeAsync(3_600_000);
    const between = gaps(registry.heartbeatsAt);
    expect(between.length).toBeGreaterThanOrEqual(108);
    expect(Math.min(...between)).toBeGreaterThanOrEqual(27_000);
    expect(Math.max(...between)).toBeLessThanOrEqual(33_001);
    expect(new Set(between).size).toBeGreaterThan(50);
  });

  it('are tried quickly after a failure, once at 45 s, and go on beyond the TTL', async () => {
    const registry = registryInMemory();
    register({ servers: 'http://registry', name: 'shop', url: 'http://shop', fetch: registry.fetch });
    await vi.advanceTimersByTimeAsync(100_000);
    registry.setUp(false);
    const lastSuccess = registry.heartbeatsAt.at(-1) ?? 0;
    await vi.advanceTimersByTimeAsync(300_000);
    const attempts = registry.heartbeatsAt.filter((at) => at > lastSuccess).map((at) => at - lastSuccess);
    expect(attempts.filter((at) => at < 60_000).length).toBeGreaterThanOrEqual(8);
    expect(attempts.some((at) => Math.abs(at - 45_000) <= 1)).toBe(true);
    expect(Math.max(...gaps(attempts))).toBeLessThanOrEqual(5001);
    registry.setUp(true);
    await vi.advanceTimersByTimeAsync(100_000);
    expect(Math.max(...gaps(registry.heartbeatsAt.slice(-3)))).toBeGreaterThanOrEqual(27_000);
  });

  it('make it the instance that it asked to be, once the registry is upgraded to one that knows instances', async () => {
    const registry = registryToUpgrade();
    const shop = { name: 'shop', url: 'http://shop', instanceId: 'a' };
    const registration = register({ servers: 'http://registry', ...shop, fetch: registry.fetch });
    await vi.advanceTimersByTimeAsync(70_000);
    expect(registry.calls).toEqual(['register undefined', 'heartbeat undefined', 'heartbeat undefined']);
    registry.upgrade();
    await vi.advanceTimersByTimeAsync(70_000);
    expect(registry.calls.slice(3, 6)).toEqual(['heartbeat a', 'register a', 'heartbeat a']);
    expect(registration.state()).toBe('registered');
  });
});
