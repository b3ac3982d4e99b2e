import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRegistryClient, type RegistryClient } from '@rollcall/client/registry-client.ts';
import { findExecutable } from '@rollcall/local/executables.ts';
import { runProgram, startProcess } from '@rollcall/local/processes.ts';
import { REPOSITORY } from '@rollcall/local/services.ts';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type RealRegistry, startRealRegistry } from './real-registry.ts';

/** Commands, as the document has them for one language. */
interface Programs {
  /** Keeps itself registered as an instance of `shop`. */
  readonly keep: readonly string[];
  /** Lists the instances of `shop`. */
  readonly list: readonly string[];
}

/** How often the programs of the page register. */
const OFTEN = /30 if|30 \* time\.Second/;

let directory: string;
let tokenFile: string;
let registry: RealRegistry;
let client: RegistryClient;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'rollcall-documented-'));
  tokenFile = join(directory, 'token');
  registry = await startRealRegistry({ asksForTokens: true });
  await registry.namespace.kubectl(['create', 'serviceaccount', 'shop']);
  client = createRegistryClient({ servers: registry.url, token: await createToken() });
});
afterAll(async () => {
  await registry[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});

async function createToken(): Promise<string> {
  return (await registry.namespace.kubectl(['create', 'token', 'shop', '--audience', 'rollcall'])).trim();
}

/** Programs of the page that register more often than they say there: every 0.2 s. */
async function documented(language: string): Promise<string[]> {
  const page = await readFile(join(REPOSITORY, 'docs', 'clients.md'), 'utf8');
  const blocks = [...page.matchAll(/^```(\w+)\n(.*?)^```$/gms)];
  const [keep = '', ...others] = blocks.flatMap(([, name, code = '']) => (name === language ? [code] : []));
  expect(keep).toMatch(OFTEN);
  return [keep.replace(OFTEN, (every) => (every === '30 if' ? '0.2 if' : '200 * time.Millisecond')), ...others];
}

async function pythonPrograms(): Promise<Programs> {
  const [keep = [], list = []] = (await documented('python')).map((code) => ['python3', '-c', code]);
  return { keep, list };
}

async function goPrograms(): Promise<Programs> {
  const [keep = [], list = []] = await Promise.all((await documented('go')).map(buildGo));
  return { keep, list };
}

async function buildGo(code: string, index: number): Promise<string[]> {
  const program = join(directory, `program-${index}`);
  await writeFile(`${program}.go`, code);
  // Flags with which our other builds have compiled the standard library.
  const command = ['go', 'build', '-trimpath', '-o', program, `${program}.go`];
  const env = { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-mod=mod', GOWORK: 'off', GOPROXY: 'off' };
  await runProgram(command, { cwd: directory, env });
  return [program];
}

function environment(language: string): NodeJS.ProcessEnv {
  return {
    PATH: process.env['PATH'],
    HOME: process.env['HOME'],
    ROLLCALL_SERVER: registry.url,
    ROLLCALL_TOKEN_FILE: tokenFile,
    SERVICE_URL: `http://10.0.0.7:8080/${language}`,
  };
}

async function start(language: string, { keep: [command = '', ...args] }: Programs) {
  const logFile = join(directory, `${language}.log`);
  const program = await startProcess({ name: language, command, args, logFile, env: environment(language) });
  return {
    stop: () => program.stop(),
    exited: program.exited,
    /** Waits until it has logged this. */
    logged: (text: string) => vi.waitFor(async () => expect(await readFile(logFile, 'utf8')).toContain(text), TIMEOUT),
    [Symbol.asyncDispose]: () => program.stop({ signal: 'SIGKILL' }),
  };
}

const TIMEOUT = { timeout: 20_000 };

/** Ids of the instances of `shop` that live, by language. */
async function instances(): Promise<Record<string, string | undefined>> {
  const found = await client.listInstances('shop').catch(() => ({ instances: [] }));
  return Object.fromEntries(found.instances.map((each) => [each.service_url.split('/').at(-1), each.instance_id]));
}

const bothLive = () =>
  vi.waitFor(async () => {
    const living = await instances();
    expect(Object.keys(living).toSorted()).toEqual(['go', 'python']);
    return living;
  }, TIMEOUT);

const lacking = (await Promise.all(['python3', 'go'].map(findExecutable))).includes(undefined);

test.skipIf(lacking)(
  'the clients of docs/clients.md stay registered beside each other',
  { timeout: 120_000 },
  async () => {
    const programs = { python: await pythonPrograms(), go: await goPrograms() };
    await writeFile(tokenFile, 'of-yesterday\n');
    await using python = await start('python', programs.python);
    await using go = await start('go', programs.go);
    await Promise.all([python.logged('401'), go.logged('401')]);
    await writeFile(tokenFile, await createToken());
    const first = await bothLive();
    expect(first['python']).not.toBe(first['go']);

    await registry.kill();
    await Promise.all([python.logged('refused'), go.logged('refused')]);
    await registry.restart();
    for (const id of Object.values(first)) await client.unregister('shop', { instanceId: id });
    expect(await bothLive()).toEqual(first);
    for (const {
      list: [command = '', ...args],
    } of Object.values(programs)) {
      const printed = await runProgram([command, ...args], { env: environment('') });
      expect(
        printed
          .trim()
          .split('\n')
          .map((line) => line.toLowerCase())
          .toSorted(),
      ).toEqual(['http://10.0.0.7:8080/go true', 'http://10.0.0.7:8080/python true']);
    }

    await python.stop();
    expect(await python.exited).toEqual({ code: 0, signal: null });
    expect(Object.keys(await instances())).toEqual(['go']);
    await go.stop();
    expect(await go.exited).toEqual({ code: 0, signal: null });
    expect(await instances()).toEqual({});
  },
);
