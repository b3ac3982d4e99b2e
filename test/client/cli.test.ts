import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { createRegistryClient } from '@rollcall/client/registry-client.ts';
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { freePort } from './contract-server.ts';
import { type RealRegistry, startRealRegistry } from './real-registry.ts';
import { printed, type RollcallResult, rollcall, startRollcall } from './rollcall-process.ts';

let registry: RealRegistry;
beforeAll(async () => {
  registry = await startRealRegistry();
});
afterAll(() => registry[Symbol.asyncDispose]());

const client = () => createRegistryClient({ servers: registry.url });
const run = (...args: string[]): Promise<RollcallResult> => rollcall(args, { env: { ROLLCALL_SERVER: registry.url } });

beforeEach(async () => {
  for (const { service_name } of (await client().listServices()).services) await client().unregister(service_name);
});

describe('rollcall', () => {
  it('registers, keeps alive, shows and removes a service', async () => {
    const registered = await run(
      'register',
      'shop',
      'http://10.0.0.7:8080',
      '--capability',
      'rest',
      '--capability',
      'grpc',
    );
    expect(registered).toMatchObject({ code: 0, err: '' });
    expect(registered.out).toMatch(/^'shop' is registered as [0-9a-f-]{36} for 60 s\n$/);
    const shown = await run('get', 'shop');
    expect(shown.out).toMatch(
      /^Name: +shop\nURL: +http:\/\/10\.0\.0\.7:8080\nCapabilities: +rest, grpc\nID: .*\nRegistered: /,
    );
    expect(await run('unregister', 'shop')).toMatchObject({ code: 0, out: expect.stringContaining('shop') });
    expect(await run('services')).toMatchObject({ code: 0, out: '', err: 'No such services are registered.\n' });
  });

  it('lists services in aligned columns, all or those that match', async () => {
    await client().register({ service_name: 'shop', service_url: 'http://10.0.0.7:8080', capabilities: ['rest'] });
    await client().register({ service_name: '店舗-admin', service_url: 'http://x' });
    const { out } = await run('services');
    const [titles = '', ...rows] = out.trimEnd().split('\n');
    expect(titles).toMatch(/^NAME {9}URL +CAPABILITIES {3}HEARTBEAT {3}AGE$/);
    expect(rows.toSorted()).toEqual([
      expect.stringMatching(/^shop {9}http:\/\/10\.0\.0\.7:8080 {3}rest +\d+s +\d+s$/),
      expect.stringMatching(/^店舗-admin {3}http:\/\/x {15}- +\d+s +\d+s$/),
    ]);
    expect((await run('services', '--capability', 'rest')).out).not.toContain('店舗');
    expect((await run('services', '--prefix', '店')).out).not.toContain('shop');
  });

  it('lists services by what their instances say, and removes all instances of a name', async () => {
    for (const instance_id of ['a', 'b']) {
      const metadata = { team: instance_id };
      await client().register({ service_name: 'pair', instance_id, service_url: 'http://x', zone: 'z1', metadata });
    }
    const listed = async (...filter: string[]) => (await run('services', ...filter)).out.includes('pair');
    expect(await listed('--metadata', 'team=a', '--zone', 'z1', '--healthy')).toBe(true);
    expect(await listed('--metadata', 'team=c')).toBe(false);
    expect(await run('services', '--metadata', 'team')).toMatchObject({ code: 2 });
    expect(await run('unregister', 'pair', '--all', '--instance-id', 'a')).toMatchObject({ code: 2 });
    expect(await run('unregister', 'pair', '--all')).toMatchObject({ code: 0, err: '' });
    expect(await run('unregister', 'pair', '--all')).toMatchObject({ code: 3, out: '' });
  });

  it('prints the very body of the API with -o json', async () => {
    await client().register({ service_name: 'shop', service_url: 'http://shop' });
    const { service_id } = await client().getService('shop');
    const bodies = await Promise.all(
      [['services'], ['get', 'shop'], ['history'], ['history', 'shop'], ['stats']].map(async (args) => {
        const { code, out } = await run('-o', 'json', ...args);
        expect(code).toBe(0);
        expect(out).toContain('\n  "');
        return JSON.parse(out) as unknown;
      }),
    );
    expect(bodies).toEqual([
      { services: [expect.objectContaining({ service_id })], total: 1 },
      expect.objectContaining({ service_id, capabilities: [] }),
      await client().history(),
      await client().serviceHistory('shop'),
      await client().statistics(),
    ]);
    expect(JSON.parse((await run('register', 'shop', 'http://two', '-o', 'json')).out)).toMatchObject({
      service_id,
      ttl: 60,
    });
    expect(JSON.parse((await run('unregister', 'shop', '-o', 'json')).out)).toMatchObject({ service_name: 'shop' });
  });

  it('says that nothing was delivered', async () => {
    const none = { code: 0, out: '', err: 'There are no such updates.\n' };
    expect(await run('history')).toMatchObject(none);
    expect(await run('history', 'shop')).toMatchObject(none);
  });

  it('shows what was delivered', async () => {
    const { job_id } = await client().deploy({
      service_name: 'shop',
      version: '1.4.0',
      artifact_url: 'example/shop:1.4.0',
    });
    const status = {
      phase: 'Succeeded',
      oldVersion: '1.3.0',
      startedAt: '2026-11-20T10:00:00Z',
      finishedAt: '2026-11-20T10:00:42Z',
    };
    const patch = ['--subresource=status', '--type=merge', '--patch', JSON.stringify({ status })];
    await registry.namespace.kubectl(['patch', 'deliveryjob', job_id, ...patch]);
    await vi.waitFor(async () => expect((await client().history()).total).toBe(1), { timeout: 10_000 });
    expect((await run('history')).out).toMatch(/^SERVICE +FROM +TO .*\nshop +1\.3\.0 +1\.4\.0 +success +42s +\S+\n$/);
    expect((await run('history', 'shop', '--limit', '1')).out).toContain('example/shop:1.4.0');
    expect((await run('stats')).out).toMatch(/Successful: +1 \(100\.0 %\)[^]*shop +1\n$/);
  });

  it('follows changes as JSON lines', async () => {
    await client().register({ service_name: 'shop', service_url: 'http://shop' });
    const watching = startRollcall(['watch', '--prefix', 'shop', '-o', 'json', '--server', registry.url]);
    await printed(watching, '"added"');
    await client().register({ service_name: 'cart', service_url: 'http://cart' });
    await client().register({ service_name: 'shop', service_url: 'http://new' });
    await client().unregister('shop');
    await printed(watching, '"removed"');
    watching.child.kill('SIGINT');
    expect(await watching.ended).toMatchObject({ signal: 'SIGINT', err: '' });
    const lines = watching
      .out()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown);
    expect(lines).toEqual([
      { type: 'added', service: expect.objectContaining({ service_name: 'shop', service_url: 'http://shop' }) },
      { type: 'modified', service: expect.objectContaining({ service_url: 'http://new' }) },
      { type: 'removed', service: expect.objectContaining({ service_name: 'shop' }) },
    ]);
  });

  it('follows changes as a table, through a crash of the registry', async () => {
    const watching = startRollcall(['watch', '--server', registry.url]);
    await printed(watching, 'CAPABILITIES');
    await client().register({ service_name: 'shop', service_url: 'http://shop' });
    await printed(watching, 'shop');
    await registry.kill();
    await vi.waitFor(() => expect(watching.err()).toContain('trying to connect again'), { timeout: 30_000 });
    await registry.restart();
    await vi.waitFor(() => expect(watching.err()).toContain('connected again'), { timeout: 15_000 });
    await client().unregister('shop');
    await printed(watching, 'removed');
    watching.child.kill();
    await watching.ended;
    const [titles, ...rows] = watching.out().trimEnd().split('\n');
    expect(titles).toMatch(/^TIME +EVENT +NAME +URL +CAPABILITIES$/);
    expect(rows).toEqual([
      expect.stringMatching(/^\d\d:\d\d:\d\d +added +shop +http:\/\/shop +-$/),
      expect.stringMatching(/^\d\d:\d\d:\d\d +removed +shop +http:\/\/shop +-$/),
    ]);
  });

  it('runs a program that everybody can find while it lives', async () => {
    const source = "console.log('ready'); setInterval(() => {}, 1000)";
    const flags = ['--name', 'shop', '--url', 'http://shop', '--server', registry.url];
    const running = startRollcall(['run', ...flags, '--', process.execPath, '--eval', source]);
    await printed(running, 'ready');
    expect(await client().getService('shop')).toMatchObject({ service_url: 'http://shop' });
    running.child.kill('SIGTERM');
    expect(await running.ended).toMatchObject({ code: 143 });
    await expect(client().getService('shop')).rejects.toMatchObject({ status: 404 });
  });

  it.each([
    { args: ['get', 'ghost'], code: 3, err: 'ghost' },
    { args: ['unregister', 'ghost'], code: 3, err: 'ghost' },
    { args: ['register', 'a:b', 'http://x'], code: 1, err: "':'" },
    { args: ['register', 'shop', 'nonsense'], code: 1, err: 'service_url' },
    { args: ['get'], code: 2, err: 'missing required argument' },
  ])('$args ends with $code and says why', async ({ args, code, err }) => {
    const result = await run(...args);
    expect(result).toMatchObject({ code, out: '' });
    expect(result.err).toContain(err);
  });

  it.each(['services', 'stats', 'watch'])('%s ends with 4 when no registry answers', async (command) => {
    const server = `http://127.0.0.1:${await freePort()}`;
    const result = await rollcall([command, '--server', server]);
    expect(result.code).toBe(4);
    expect(result.err).toMatch(
      new RegExp(`^rollcall: ${server} cannot be reached: .*ECONNREFUSED.* \\(.*--server\\)\n$`),
    );
  });

  it('finds the registry that npm start has left a note of', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'rollcall-cli-'));
    try {
      await mkdir(join(directory, '.local'));
      await mkdir(join(directory, 'below'));
      await writeFile(join(directory, '.local', 'endpoints.json'), JSON.stringify({ registry: registry.url }));
      expect(await rollcall(['services'], { cwd: join(directory, 'below') })).toMatchObject({ code: 0 });
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  it('says which Node it needs when it is run by an older one', async () => {
    const bin = join(import.meta.dirname, '..', '..', 'cli', 'bin', 'rollcall.js');
    const older = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } })`;
    const args = ['--import', `data:text/javascript,${encodeURIComponent(older)}`, bin, 'services'];
    await expect(promisify(execFile)(process.execPath, args)).rejects.toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(
        /^rollcall: Node\.js 26 or newer is needed, and this is 20\.20\.2\. .*npm exec rollcall.*\n$/,
      ),
    });
  });

  it('is what npm links as the command', async () => {
    const command = join(import.meta.dirname, '..', '..', 'node_modules', '.bin', 'rollcall');
    const PATH = `${dirname(process.execPath)}:${process.env['PATH']}`;
    const { stdout } = await promisify(execFile)(command, ['services'], {
      env: { PATH, ROLLCALL_SERVER: registry.url },
    });
    expect(stdout).toBe('');
  });
});
