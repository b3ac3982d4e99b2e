import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { isAlive } from '@rollcall/local/file-lock.ts';
import { freePorts, isPortFree } from '@rollcall/local/ports.ts';
import { type RedisOptions, startRedis } from '@rollcall/local/redis.ts';
import { Redis } from 'ioredis';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { createRedis } from '../support/redis.ts';

const directory = await mkdtemp(join(inject('temporaryDirectory'), 'redis-'));
const binary = inject('redisBinary');

/** A server of the test's own; stopped after it, whatever happens. */
async function startOwn(options: Partial<RedisOptions> = {}) {
  const server = await startRedis({ directory: await mkdtemp(join(directory, 'own-')), binary, ...options });
  onTestFinished(() => server.stop());
  return server;
}

/**
 * A client that says at once what went wrong instead of trying again; disconnected after the test.
 */
async function connect(url: string, options: { protocol?: 2; enableReadyCheck?: false } = {}): Promise<Redis> {
  const noRetries = { retryStrategy: () => null, maxRetriesPerRequest: 0 };
  const client = new Redis(url, { lazyConnect: true, ...noRetries, ...options });
  // Reported by the rejected calls as well; without a listener it would be printed.
  client.on('error', () => undefined);
  onTestFinished(() => client.disconnect());
  await client.connect();
  return client;
}

/** A client that has not said the password yet, nor anything else. */
function connectAsStranger(url: string): Promise<Redis> {
  const bare = new URL(url);
  bare.password = '';
  return connect(bare.href, { protocol: 2, enableReadyCheck: false });
}

describe('the shared Redis', () => {
  test('gives each file a database of its own, empty again afterwards', async () => {
    await using second = await createRedis();
    let url: string;
    {
      await using first = await createRedis();
      ({ url } = first);
      const [one, other] = await Promise.all([connect(first.url), connect(second.url)]);
      await one.set('greeting', 'hello');
      expect(await one.get('greeting')).toBe('hello');
      expect(await other.get('greeting')).toBeNull();
      expect(first.prefix).not.toBe(second.prefix);
    }
    const later = await connect(url);
    expect(await later.dbsize()).toBe(0);
  });

  test('carries messages to subscribers', async () => {
    await using own = await createRedis();
    const [subscriber, publisher] = await Promise.all([connect(own.url), connect(own.url)]);
    const channel = `${own.prefix}news`;
    await subscriber.subscribe(channel);
    const message = once(subscriber, 'message');
    expect(await publisher.publish(channel, 'it works')).toBe(1);
    expect(await message).toEqual([channel, 'it works']);
  });
});

describe('startRedis', () => {
  test('lets nobody in without the password, and keeps it from others', async () => {
    const own = join(directory, 'guarded');
    const server = await startOwn({ directory: own });
    const { password } = new URL(server.url);
    expect(password.length).toBeGreaterThanOrEqual(32);
    const stranger = await connectAsStranger(server.url);
    await expect(stranger.get('secret')).rejects.toThrow('NOAUTH');
    await expect(stranger.call('AUTH', 'guess')).rejects.toThrow('WRONGPASS');
    const friend = await connect(server.url);
    expect(await friend.ping()).toBe('PONG');

    expect((await stat(join(own, 'redis.conf'))).mode & 0o777).toBe(0o600);
    expect(await readFile(join(own, 'redis.log'), 'utf8')).not.toContain(password);
  });

  test.runIf(process.platform === 'linux')('does not show the password in the list of processes', async () => {
    const server = await startOwn();
    const commandLine = await readFile(`/proc/${server.pid}/cmdline`, 'utf8');
    expect(commandLine).toContain('redis.conf');
    expect(commandLine).not.toContain(new URL(server.url).password);
  });

  test('listens at 127.0.0.1 alone', async () => {
    const server = await startOwn();
    const elsewhere = new URL(server.url);
    elsewhere.hostname = '127.0.0.2';
    await expect(connect(elsewhere.href)).rejects.toThrow('Connection is closed');
    const client = await connect(server.url);
    expect(await client.config('GET', 'bind')).toEqual(['bind', '127.0.0.1']);
    expect(await client.config('GET', 'protected-mode')).toEqual(['protected-mode', 'yes']);
  });

  test('reports when the server is killed', async () => {
    const server = await startOwn();
    const client = await connect(server.url);
    const ended = once(client, 'end');
    process.kill(server.pid ?? 0, 'SIGKILL');
    await expect(server.failed).rejects.toThrow('redis ended by SIGKILL');
    await ended;
    await expect(client.ping()).rejects.toThrow('Connection is closed');
  });

  test('leaves nothing when it is stopped, and begins empty when it is started again', async () => {
    const own = join(directory, 'stopped');
    const server = await startOwn({ directory: own });
    const client = await connect(server.url);
    await client.set('here', 'today');
    const pid = server.pid ?? 0;
    await server.stop();
    expect(server.pid).toBeUndefined();
    expect(isAlive(pid)).toBe(false);
    expect(await isPortFree(server.port)).toBe(true);
    expect(await readdir(join(own, 'data'))).toEqual([]);

    await server.start();
    const again = await connect(server.url);
    expect(await again.get('here')).toBeNull();
    await server.stop();
    await server.stop();
    await rm(own, { recursive: true });
  });

  test('keeps what was acknowledged when it is killed, if that is asked for', async () => {
    const server = await startOwn({ appendOnly: true });
    const client = await connect(server.url);
    await client.set('here', 'to stay');
    await server.kill();
    await server.start();
    const again = await connect(server.url);
    expect(await again.get('here')).toBe('to stay');
  });

  test('runs two at once that share nothing', async () => {
    const [first, second] = await Promise.all([startOwn(), startOwn()]);
    const [one, other] = await Promise.all([connect(first.url), connect(second.url)]);
    await one.set('mine', '1');
    expect(await other.get('mine')).toBeNull();
    const confused = await connectAsStranger(first.url);
    await expect(confused.call('AUTH', new URL(second.url).password)).rejects.toThrow('WRONGPASS');
    await first.stop();
    expect(await other.ping()).toBe('PONG');
  });

  test('says why it does not start', async () => {
    const [port = 0] = await freePorts(1);
    const occupier = createServer().listen(port, '127.0.0.1');
    await once(occupier, 'listening');
    onTestFinished(() => void occupier.close());
    await expect(startOwn({ port })).rejects.toThrow('Address already in use');
  });

  test.runIf(process.platform === 'linux')('does not outlive a starter that is killed', async () => {
    const script = join(import.meta.dirname, 'abandoned-redis.ts');
    const starter = spawn(process.execPath, [script, join(directory, 'abandoned'), JSON.stringify(binary)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = await once(createInterface(starter.stdout), 'line');
    const port = Number(line);
    expect(await isPortFree(port)).toBe(false);
    starter.kill('SIGKILL');
    await expect.poll(() => isPortFree(port), { timeout: 20_000 }).toBe(true);
  });
});
