import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, glob, mkdtemp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { freePorts } from '@rollcall/local/ports.ts';
import { runtime, sharedArenas, smallHeap } from '@rollcall/local/runtime.ts';
import { startService, waitUntilReady } from '@rollcall/local/services.ts';
import { waitUntil } from '@rollcall/local/wait.ts';
import { describe, expect, inject, test } from 'vitest';
import { reproducible } from '../../tools/sbom.ts';
import { createNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';

const ROOT = join(import.meta.dirname, '..', '..');

const read = (path: string): Promise<string> => readFile(join(ROOT, path), 'utf8');

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly workspaces: readonly string[];
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

const manifest = async (path: string): Promise<Manifest> => JSON.parse(await read(join(path, 'package.json')));

describe('the Dockerfile', () => {
  test('has the Node that everything is tested with, and the version of this release', async () => {
    const dockerfile = await read('Dockerfile');
    const { version, devDependencies } = await manifest('.');
    const base = `ARG NODE_IMAGE=docker\\.io/library/node:${devDependencies?.['node']}-[a-z-]+@sha256:[0-9a-f]{64}\n`;
    expect(dockerfile).toMatch(new RegExp(base));
    expect(dockerfile).toContain(`ARG VERSION=${version}\n`);
  });

  test('copies every workspace that a process of the image needs, and none has dependencies for development', async () => {
    const included = new Set((await read('.dockerignore')).match(/(?<=^!).+$/gm));
    const folders = new Map<string, string>();
    for (const folder of (await manifest('.')).workspaces) folders.set((await manifest(folder)).name, folder);
    const needed = new Set(['@rollcall/image']);
    for (const name of needed) {
      const folder = folders.get(name) ?? '';
      expect(included).toContain(folder.split('/')[0]);
      const { dependencies = {}, devDependencies } = await manifest(folder);
      expect(devDependencies).toBeUndefined();
      for (const dependency of Object.keys(dependencies)) if (folders.has(dependency)) needed.add(dependency);
    }
    expect(needed.size).toBeGreaterThan(4);
  });
});

async function imageEnvironment(): Promise<Record<string, string>> {
  const lines = (await read('Dockerfile')).matchAll(/^ENV ([A-Z_]+)="?([^"\n]+)"?$/gm);
  return Object.fromEntries([...lines].map(([, name = '', value = '']) => [name, value]));
}

test('Node runs in a cluster as it does here', async () => {
  const [, entryPoint = '[]'] = /^ENTRYPOINT (.+)$/m.exec(await read('Dockerfile')) ?? [];
  expect(JSON.parse(entryPoint)).toEqual(['node', '/app/image/src/main.js']);
  expect(await imageEnvironment()).toMatchObject(runtime);
  const values = await read('charts/rollcall/values.yaml');
  for (const [name, value] of Object.entries(smallHeap)) {
    const processes = name in sharedArenas ? 3 : 2;
    const said = [...values.matchAll(new RegExp(`^ +${name}: "?([^"\n]+)"?$`, 'gm'))].map(([, each]) => each);
    expect({ [name]: said }).toEqual({ [name]: Array(processes).fill(value) });
  }
});

describe("the image's entry point", () => {
  test.each([
    { args: ['registry'], code: 1, err: /ROLLCALL_DATABASE_URL is required/ },
    { args: ['gateway'], code: 1, err: /ROLLCALL_REGISTRY_URLS is required/ },
    { args: ['communication'], code: 1, err: /ROLLCALL_VAULT_KEYS_FILE is required/ },
    { args: ['payment'], code: 1, err: /ROLLCALL_VAULT_KEYS_FILE is required/ },
    { args: ['federation'], code: 1, err: /ROLLCALL_DATABASE_URL is required/ },
    { args: ['fetch'], code: 2, err: /rollcall fetch: Wrong usage: --url must not be empty/ },
    { args: ['gatekeeper'], code: 2, err: /there is no process "gatekeeper"/ },
    { args: [], code: 2, err: /which process\?/ },
  ])('ends with $code for $args', async ({ args, code, err }) => {
    expect(await run(args)).toEqual({ code, out: '', err: expect.stringMatching(err) });
  });

  test('explains itself', async () => {
    expect(await run(['--help'])).toEqual({ code: 0, out: expect.stringMatching(/^Usage: rollcall PROCESS/), err: '' });
  });
});

test('the query planner of federation needs no library that is not beside Node in the image', async () => {
  const script = `
    const libraries = () => process.report.getReport().sharedObjects;
    const before = new Set(libraries());
    await import('@graphql-hive/router-query-planner');
    console.log(JSON.stringify(libraries().filter((each) => !before.has(each))));`;
  const { out, err } = await runNode(['--input-type=module', '--eval', script]);
  expect({ added: JSON.parse(out), err }).toEqual({ added: [expect.stringMatching(/\.node$/)], err: '' });
});

test('the JavaScript of the image runs without a stripper of types, line by line as the sources', async () => {
  const directory = await mkdtemp(join(inject('temporaryDirectory'), 'emitted-'));
  const source = join(directory, 'src');
  await cp(join(ROOT, 'image', 'src'), source, { recursive: true });
  await cp(join(ROOT, 'image', 'package.json'), join(directory, 'package.json'));
  await runNode(['tools/emit-javascript.ts', directory]);
  const { out, err } = await runNode(['--no-strip-types', join(source, 'main.js'), '--help']);
  expect({ out, err }).toEqual({ out: expect.stringMatching(/^Usage: rollcall PROCESS/), err: '' });
  const emitted = await readFile(join(source, 'processes.js'), 'utf8');
  const lines = (await read('image/src/processes.ts')).split('\n');
  expect(emitted).not.toContain('readonly ');
  expect(emitted.split('\n').map(({ length }) => length)).toEqual(lines.map(({ length }) => length));
  expect(await readFile(join(directory, 'package.json'), 'utf8')).toContain('"./*.ts": "./src/*.js"');
});

test('the JavaScript of the image names no file by its name in the sources', async () => {
  const directory = await mkdtemp(join(inject('temporaryDirectory'), 'emitted-'));
  for (const folder of ['platform', 'operator', 'services'])
    await cp(join(ROOT, folder), join(directory, folder), { recursive: true, filter: isInImage });
  await runNode(['tools/emit-javascript.ts', directory]);
  const named: string[] = [];
  for await (const file of glob('**/*.js', { cwd: directory })) {
    const emitted = await readFile(join(directory, file), 'utf8');
    named.push(...(emitted.match(/['"`]\.{1,2}\/[^'"`\n]+\.ts['"`]/g) ?? []));
  }
  expect(named).toEqual([]);
});

/** As .dockerignore has it. */
function isInImage(path: string): boolean {
  return !/\/(?:node_modules|testing)$|\.test\.ts$/.test(path);
}

test('what drains goes on when it gets another signal to end', { timeout: 180_000 }, async () => {
  const namespace = await createNamespace('image');
  await using database = await createDatabase();
  const [port = 0, adminPort = 0] = await freePorts(2);
  const registry = await startService(
    {
      name: 'image-registry',
      script: 'image/src/main.ts',
      args: ['registry'],
      env: {
        KUBECONFIG: inject('kubeconfig'),
        ROLLCALL_NAMESPACE: namespace.name,
        ROLLCALL_HOST: '127.0.0.1',
        ROLLCALL_PORT: String(port),
        ROLLCALL_GRPC_PORT: '0',
        ROLLCALL_ADMIN_PORT: String(adminPort),
        ROLLCALL_DATABASE_URL: database.url,
        ROLLCALL_DRAIN_SECONDS: '5',
      },
    },
    { logDirectory: inject('temporaryDirectory'), env: { PATH: process.env['PATH'] } },
  );
  try {
    const { failed } = registry;
    await waitUntilReady(registry, adminPort);
    process.kill(registry.pid, 'SIGTERM');
    const isDraining = async () => (await readFile(registry.logFile, 'utf8')).includes('"stopping"');
    await waitUntil('it says that it stops', isDraining, { timeoutMs: 30_000, failed });
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.kill(registry.pid, signal);
    expect(await registry.exited).toEqual({ code: 0, signal: null });
  } finally {
    await registry.stop();
  }
});

describe('the bill of materials', () => {
  test('does not say when and where it was made, but what it is about', () => {
    const first = reproducible(document('urn:uuid:1', '2026-11-21T10:00:00Z', 'app'), undefined);
    expect(reproducible(document('urn:uuid:2', '2026-11-22T10:00:00Z', 'elsewhere'), undefined)).toEqual(first);
    expect(first).toEqual({
      serialNumber: expect.stringMatching(/^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/),
      metadata: { component: { 'bom-ref': 'rollcall@1.0.0', name: 'rollcall' } },
      components: [{ 'bom-ref': '@rollcall/crds@1.0.0', name: '@rollcall/crds' }],
      dependencies: [{ ref: '@rollcall/crds@1.0.0', dependsOn: [] }],
    });
  });

  test('leaves out the compiler, which npm lists and does not install', () => {
    const without = document('urn:uuid:1', '', 'app');
    const ref = 'typescript@7.0.2';
    const native = '@typescript/typescript-linux-x64@7.0.2';
    const listed = {
      ...without,
      components: [...without.components, { 'bom-ref': ref, name: ref }, { 'bom-ref': native, name: native }],
      dependencies: [
        { ref: '@rollcall/crds@1.0.0', dependsOn: [ref] },
        { ref, dependsOn: [native] },
      ],
    };
    expect(reproducible(listed, undefined)).toEqual(reproducible(without, undefined));
  });

  test('has the time of the sources, and another serial number for it', () => {
    const untimed = reproducible(document('urn:uuid:1', '', 'app'), undefined);
    const timed = reproducible(document('urn:uuid:1', '', 'app'), '1700000000');
    expect(timed).toMatchObject({ metadata: { timestamp: '2023-11-14T22:13:20.000Z' } });
    expect(timed).not.toMatchObject({ serialNumber: Reflect.get(untimed, 'serialNumber') });
  });
});

interface Result {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

const run = (args: readonly string[]): Promise<Result> => runNode(['image/src/main.ts', ...args]);

async function runNode(args: readonly string[]): Promise<Result> {
  const child = spawn(process.execPath, args, { cwd: ROOT, env: {}, stdio: 'pipe' });
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code, out, err };
}

function document(serialNumber: string, timestamp: string, name: string): Parameters<typeof reproducible>[0] {
  return {
    serialNumber,
    metadata: { timestamp, component: { 'bom-ref': 'rollcall@1.0.0', name } },
    components: [{ 'bom-ref': '@rollcall/crds@1.0.0', name: 'crds' }],
    dependencies: [{ ref: '@rollcall/crds@1.0.0', dependsOn: [] }],
  };
}
