import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { run as runFetch } from '@rollcall/fetcher/run.ts';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { stall, status, whole } from './artifact-server.ts';
import { startFetcher } from './fetcher-process.ts';
import { type FetcherFixture, sha256, startFetcherFixture } from './fixture.ts';

const run = promisify(execFile);
const eventually = { timeout: 30_000, interval: 50 };

let fixture: FetcherFixture;
let content: Buffer;
let environment: Record<string, string>;
let directory: string;
let output: string;

beforeAll(async () => {
  fixture = await startFetcherFixture();
  content = fixture.content;
  environment = { NODE_EXTRA_CA_CERTS: fixture.certificates.ca };
});

beforeEach(async () => {
  directory = await fixture.directory();
  output = join(directory, 'shop');
});

afterAll(() => fixture[Symbol.asyncDispose]());

/** The options of a fetch that goes well, and more. */
function options(more: Readonly<Record<string, string>> = {}): string[] {
  const all = {
    url: `${fixture.server.origin}/shop?signature=q3ry`,
    checksum: `sha256:${sha256(content).hex}`,
    output,
    'max-bytes': String(1024 * 1024),
    ...more,
  };
  return [...Object.entries(all).flatMap(([name, value]) => [`--${name}`, value]), '--allow-private'];
}

const fetchWith = (args: readonly string[], more: Record<string, string> = {}) =>
  startFetcher(args, { ...environment, ...more }).ended;

/** Of the only file, while it is fetched. */
async function partialSize(): Promise<number> {
  const [name] = await readdir(directory);
  return name === undefined ? 0 : (await stat(join(directory, name))).size;
}

test('fetches, and says so', async () => {
  fixture.server.answer(whole(content));
  const sum = createHash('sha512').update(content).digest('hex').toUpperCase();
  const args = options({ checksum: `sha512:${sum}` });
  expect(await fetchWith(args)).toEqual({
    code: 0,
    signal: null,
    err: `rollcall fetch: Fetched ${output}, 262144 bytes\n`,
  });
  expect((await readFile(output)).equals(content)).toBe(true);
  expect((await stat(output)).mode & 0o7777).toBe(0o755);
  expect(await fetchWith(args)).toMatchObject({ code: 0, err: expect.stringContaining('is there already') });
});

test.each([
  { code: 3, more: { checksum: `sha256:${'0'.repeat(64)}` }, says: 'does not have the sha256 checksum' },
  { code: 5, more: { 'max-bytes': '1000' }, says: 'more than the 1000 allowed' },
  { code: 2, more: { 'max-bytes': '0' }, says: '--max-bytes must be a whole number' },
  { code: 2, more: { 'credentials-dir': '/missing' }, says: 'neither a file token' },
])('exits with $code for $more', async ({ code, more, says }) => {
  fixture.server.answer(whole(content));
  const result = await fetchWith(options(more));
  expect(result.code).toBe(code);
  expect(result.err.trimEnd().split('\n').at(-1)).toContain(says);
  expect(result.err).not.toContain('q3ry');
  expect(await readdir(directory)).toEqual([]);
});

test('the last words are left where Kubernetes reads them', async () => {
  const terminationLog = join(directory, 'termination-log');
  const lines: string[] = [];
  const write = (text: string) => lines.push(text);
  expect(await runFetch(['fetch'], { write, stopRequested: new Promise(() => {}), terminationLog })).toBe(2);
  const message = await readFile(terminationLog, 'utf8');
  expect(message).toMatch(/^Wrong usage: --url /);
  expect(lines).toEqual([`rollcall fetch: ${message}\n`]);
});

test('exits with 1 when the server says no', async () => {
  fixture.server.answer(status(404));
  expect(await fetchWith(options())).toMatchObject({ code: 1, err: expect.stringContaining('answered 404') });
});

test.each(['127.0.0.1', 'localhost', '[::1]', '[::ffff:127.0.0.1]'])(
  'exits with 4 for %s unless private addresses are allowed',
  async (host) => {
    const { connections, port } = fixture.server;
    const args = options({ url: `https://${host}:${port}/shop` }).filter((arg) => arg !== '--allow-private');
    const result = await fetchWith(args);
    expect(result).toMatchObject({ code: 4, err: expect.stringContaining('not allowed') });
    expect(fixture.server.connections).toBe(connections);
    expect(await readdir(directory)).toEqual([]);
  },
);

test.each([
  ['a token', { token: 's3cret\n' }, 'Bearer s3cret'],
  [
    'username and password',
    { username: 'ada', password: 'pä:ss' },
    `Basic ${Buffer.from('ada:pä:ss').toString('base64')}`,
  ],
])('%s of a mounted Secret is sent and not shown', async (_what, files, authorization) => {
  fixture.server.answer(status(401), whole(content));
  const credentials = join(directory, 'credentials');
  await mkdir(credentials);
  for (const [name, text] of Object.entries(files)) await writeFile(join(credentials, name), text);
  const refused = await fetchWith(options({ 'credentials-dir': credentials }));
  expect(refused.code).toBe(1);
  expect(fixture.server.requests.at(-1)?.headers.authorization).toBe(authorization);
  expect(refused.err).not.toMatch(/s3cret|p.:ss/u);
  expect(await fetchWith(options({ 'credentials-dir': credentials }))).toMatchObject({ code: 0 });
});

test('proxies of the environment are not used', async () => {
  let asked = 0;
  const proxy = createServer((_request, response) => response.end()).on('connect', (_request, socket) => {
    asked += 1;
    socket.end();
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const address = proxy.address();
  const port = address !== null && typeof address === 'object' ? address.port : 0;
  fixture.server.answer(whole(content));
  const url = `http://127.0.0.1:${port}`;
  const proxies = { HTTPS_PROXY: url, https_proxy: url, HTTP_PROXY: url, ALL_PROXY: url, NODE_USE_ENV_PROXY: '1' };
  expect(await fetchWith(options(), proxies)).toMatchObject({ code: 0 });
  expect(asked).toBe(0);
  proxy.close();
});

test('SIGTERM ends it and removes what was fetched so far', async () => {
  fixture.server.answer(stall(content, 100_000));
  const fetcher = startFetcher(options(), environment);
  await expect.poll(() => readdir(directory), eventually).toEqual([expect.stringMatching(/\.part$/)]);
  fetcher.child.kill('SIGTERM');
  expect(await fetcher.ended).toMatchObject({ code: 1, err: expect.stringContaining('Stopped by SIGTERM') });
  expect(await readdir(directory)).toEqual([]);
});

test('after kill -9 the next one fetches, and removes what the first left', async () => {
  fixture.server.answer(stall(content, 100_000), whole(content));
  const fetcher = startFetcher(options(), environment);
  await expect.poll(partialSize, eventually).toBe(100_000);
  fetcher.child.kill('SIGKILL');
  expect(await fetcher.ended).toMatchObject({ signal: 'SIGKILL' });
  expect(await readdir(directory)).toEqual([expect.stringMatching(/\.part$/)]);
  expect(await fetchWith(options())).toMatchObject({ code: 0 });
  expect(await readdir(directory)).toEqual(['shop']);
  expect((await readFile(output)).equals(content)).toBe(true);
});

test('two at once do not disturb each other', async () => {
  const both = Promise.withResolvers<void>();
  const slowly = stall(content, 100_000, async (response) => {
    await both.promise;
    response.end(content.subarray(100_000));
  });
  fixture.server.answer(slowly, slowly);
  const fetchers = [startFetcher(options(), environment), startFetcher(options(), environment)];
  await expect.poll(() => readdir(directory), eventually).toHaveLength(2);
  both.resolve();
  for (const fetcher of fetchers) expect(await fetcher.ended).toMatchObject({ code: 0 });
  expect(await readdir(directory)).toEqual(['shop']);
  expect((await readFile(output)).equals(content)).toBe(true);
});

test('300 MiB are fetched in little memory', { timeout: 240_000 }, async () => {
  const block = randomBytes(1024 * 1024);
  const blocks = 300;
  const size = blocks * block.length;
  const hash = createHash('sha256');
  for (let index = 0; index < blocks; index += 1) hash.update(block);
  const measured = Promise.withResolvers<void>();
  fixture.server.answer(async (_request, response) => {
    response.writeHead(200, { 'content-length': size });
    for (let index = 1; index < blocks; index += 1) {
      if (!response.write(block)) await once(response, 'drain');
    }
    // The last byte comes once the memory has been read.
    response.write(block.subarray(0, -1));
    await measured.promise;
    response.end(block.subarray(-1));
  });
  const checksum = `sha256:${hash.digest('hex')}`;
  const fetcher = startFetcher(options({ checksum, 'max-bytes': String(size) }), environment);
  await expect.poll(partialSize, { timeout: 200_000, interval: 100 }).toBe(size - 1);
  const { stdout } = await run('ps', ['-o', 'rss=', '-p', String(fetcher.child.pid)]);
  measured.resolve();
  expect(await fetcher.ended).toMatchObject({ code: 0 });
  expect((await stat(output)).size).toBe(size);
  // In KiB; about 100 MiB of it is Node with what it has loaded.
  expect(Number(stdout)).toBeLessThan(180 * 1024);
});
