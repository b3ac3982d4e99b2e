import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type ContractServer, freePort, startContractServer } from './contract-server.ts';
import { printed, rollcall, startRollcall } from './rollcall-process.ts';

let server: ContractServer;
beforeEach(async () => {
  server = await startContractServer();
});
afterEach(() => server[Symbol.asyncDispose]());

/** `rollcall run` of a program that Node evaluates. */
function runOf(source: string, url = server.url): string[] {
  const flags = ['--name', 'shop', '--url', 'http://shop:8080', '--capability', 'rest,grpc', '--server', url];
  return ['run', ...flags, '--', process.execPath, '--eval', source];
}

const WAIT = "console.log('ready'); setInterval(() => {}, 1000);";

/** What a run with these options, and this `ROLLCALL_ZONE`, registers. */
async function registeredWith(options: readonly string[], ROLLCALL_ZONE: string): Promise<unknown> {
  const args = ['run', '--name', 'shop', '--url', 'http://shop', '--server', server.url, ...options, '--', 'true'];
  expect(await rollcall(args, { env: { ROLLCALL_ZONE } })).toMatchObject({ code: 0 });
  return JSON.parse(server.callsOf('POST /services/register').at(-1)?.body ?? '');
}

describe('rollcall run', () => {
  it('registers the program while it lives, and ends with its exit code', async () => {
    const running = startRollcall(
      runOf("console.log('ready'); process.stdin.resume(); setTimeout(process.exit, 500, 3)"),
    );
    await printed(running, 'ready');
    expect(server.services.get('shop')).toMatchObject({
      service_url: 'http://shop:8080',
      capabilities: ['rest', 'grpc'],
    });
    expect(await running.ended).toMatchObject({ code: 3, out: 'ready\n' });
    expect(server.services.size).toBe(0);
    expect(running.err()).toMatch(/^rollcall: 'shop' is registered as \S+\n$/);
  });

  it.each([
    [['--check-http', '/health'], { type: 'http', path: '/health' }],
    [['--check-tcp'], { type: 'tcp' }],
    [['--check-grpc'], { type: 'grpc' }],
    [['--check-grpc', 'acme.Shop'], { type: 'grpc', service: 'acme.Shop' }],
  ])('declares its health check: %j', async (options, check) => {
    expect(await registeredWith(options, '')).toMatchObject({ check });
  });

  it('tells where the program runs, its weight and its metadata', async () => {
    const facts = ['--weight', '50', '--metadata', 'team=payments', '--metadata', 'of=a=b'];
    expect(await registeredWith(facts, 'eu-1a')).toMatchObject({
      zone: 'eu-1a',
      weight: 50,
      metadata: { team: 'payments', of: 'a=b' },
    });
    expect(await registeredWith(['--zone', 'eu-1b'], 'eu-1a')).toMatchObject({ zone: 'eu-1b' });
    expect(await registeredWith([], '')).not.toHaveProperty('zone');
  });

  it.each(['SIGTERM', 'SIGINT'] as const)('without a program keeps the service registered until %s', async (signal) => {
    const args = ['run', '--name', 'shop', '--url', 'http://shop:8080', '--server', server.url];
    const running = startRollcall(args);
    await vi.waitFor(() => expect(running.err()).toMatch(/is registered/), { timeout: 10_000 });
    expect(server.services.has('shop')).toBe(true);
    running.child.kill(signal);
    expect(await running.ended).toMatchObject({ code: 0, out: '' });
    expect(server.services.size).toBe(0);
  });

  it('passes SIGTERM on to the program and unregisters after its end', async () => {
    const source = "process.once('SIGTERM', () => { console.log('stopping'); setTimeout(process.exit, 300, 0); });";
    const running = startRollcall(runOf(source + WAIT));
    await printed(running, 'ready');
    running.child.kill('SIGTERM');
    await printed(running, 'stopping');
    expect(server.services.size).toBe(1);
    expect(await running.ended).toMatchObject({ code: 0 });
    expect(server.services.size).toBe(0);
  });

  it.each([
    ['SIGTERM', 143],
    ['SIGINT', 130],
    ['SIGHUP', 129],
    ['SIGUSR2', 140],
  ] as const)('ends as a shell would when %s ended the program: %d', async (signal, code) => {
    const running = startRollcall(runOf(WAIT));
    await printed(running, 'ready');
    running.child.kill(signal);
    expect(await running.ended).toMatchObject({ code });
    expect(server.services.size).toBe(0);
  });

  it('unregisters a program that was killed', async () => {
    expect(await rollcall(runOf("process.kill(process.pid, 'SIGKILL')"))).toMatchObject({ code: 137 });
    expect(server.callsOf('DELETE')).toHaveLength(1);
  });

  it.each([
    { what: 'is not found', program: '/nowhere/program', code: 127 },
    { what: 'cannot be executed', program: '/dev/null', code: 126 },
  ])('says so when the program $what', async ({ program, code }) => {
    const args = ['run', '--name', 'shop', '--url', 'http://shop', '--server', server.url, '--', program];
    const result = await rollcall(args);
    expect(result.code).toBe(code);
    expect(result.err).toContain(`${program} could not be started`);
    expect(server.services.size).toBe(0);
  });

  it('runs the program although the registry is down, and registers it when it comes', async () => {
    const port = await freePort();
    const running = startRollcall(runOf(WAIT, `http://127.0.0.1:${port}`));
    await printed(running, 'ready');
    expect(running.err()).toMatch(/cannot be reached: .*; trying again\n$/);
    await using late = await startContractServer({ port });
    await vi.waitFor(() => expect(late.services.has('shop')).toBe(true), { timeout: 10_000 });
    running.child.kill('SIGTERM');
    expect(await running.ended).toMatchObject({ code: 143 });
    expect(late.services.size).toBe(0);
  });

  it('ends with the code of the program although the registry has gone, and says what that means', async () => {
    const running = startRollcall(runOf("console.log('ready'); setTimeout(process.exit, 700, 5)"));
    await printed(running, 'ready');
    await server[Symbol.asyncDispose]();
    expect(await running.ended).toMatchObject({ code: 5 });
    expect(running.err()).toContain('the registration expires by itself');
  });

  it.each([
    { status: 400, error: 'Invalid service name' },
    { status: 401, error: 'Unauthenticated' },
    { status: 403, error: 'Forbidden' },
  ])('does not start a program that the registry refuses with $status', async ({ status, error }) => {
    server.misbehave('POST /services/register', { status, body: { error, message: 'the reason' } });
    const result = await rollcall(runOf("console.log('started')"));
    expect(result).toMatchObject({ code: 1, out: '' });
    expect(result.err).toContain('the reason');
    expect(result.err).not.toContain('trying again');
  });

  it('does not start the program when a signal comes first, and takes back what was being registered', async () => {
    server.misbehave('POST /services/register', 'hang');
    const running = startRollcall(runOf("console.log('started')"));
    await vi.waitFor(() => expect(server.calls).toHaveLength(1), { timeout: 10_000 });
    running.child.kill('SIGTERM');
    expect(await running.ended).toMatchObject({ code: 143, out: '' });
    expect(server.callsOf('GET /services/shop/instances/')).toHaveLength(1);
  }, 30_000);
});

describe('the token', () => {
  it('comes from the option or the variable', async () => {
    const args = ['services', '--server', server.url];
    await rollcall(args, { env: { ROLLCALL_TOKEN: 'from-variable' } });
    await rollcall([...args, '--token', 'from-option'], { env: { ROLLCALL_TOKEN: 'from-variable' } });
    await rollcall(args, { env: { ROLLCALL_TOKEN: '' } });
    const sent = server.calls.map(({ headers }) => headers.authorization);
    expect(sent).toEqual(['Bearer from-variable', 'Bearer from-option', undefined]);
  });

  it('is the one that Kubernetes projects into the pod where there is no other', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'rollcall-token-'));
    const ROLLCALL_TOKEN_FILE = join(directory, 'token');
    await writeFile(ROLLCALL_TOKEN_FILE, 'projected\n');
    try {
      await rollcall(['services', '--server', server.url], { env: { ROLLCALL_TOKEN_FILE } });
      await rollcall(runOf('process.exit(0)'), { env: { ROLLCALL_TOKEN_FILE } });
      await rollcall(['services', '--server', server.url], { env: { ROLLCALL_TOKEN_FILE, ROLLCALL_TOKEN: 'own' } });
      const sent = new Set(server.calls.slice(0, -1).map(({ headers }) => headers.authorization));
      expect(sent).toEqual(new Set(['Bearer projected']));
      expect(server.calls.at(-1)?.headers.authorization).toBe('Bearer own');
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  it('is not repeated in the error when it is unusable', async () => {
    const result = await rollcall(['services', '--server', server.url], { env: { ROLLCALL_TOKEN: 'top\nsecret' } });
    expect(result).toMatchObject({ code: 2, out: '' });
    expect(result.err).toMatch(/^rollcall: ROLLCALL_TOKEN: the token /);
    expect(result.err).not.toContain('secret');
    expect(server.calls).toEqual([]);
  });
});

describe('a terminal or pipeline', () => {
  it('that stops reading ends a watch without complaint', async () => {
    const running = startRollcall(['watch', '-o', 'json', '--server', server.url]);
    server.put('shop');
    await printed(running, '"shop"');
    running.child.stdout?.destroy();
    server.put('cart');
    server.put('pay');
    expect(await running.ended).toMatchObject({ code: 0, err: '' });
  });
});
