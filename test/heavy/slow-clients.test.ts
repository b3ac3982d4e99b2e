import { readdir, readFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { waitUntil } from '@rollcall/local/wait.ts';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type Backend, createClient, startBackend, startGatewayProcess, tokenOf } from '../gateway/gateway.ts';
import { createNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistryProcess } from '../support/registry.ts';
import type { Replica } from '../support/replica.ts';

/** Connections that say nothing at all, and those that say nothing more after a request. */
const SILENT = 2000;
const KEPT = 8000;
/**
 * Slow clients of each kind; of those that read nothing so many that each could take a connection
 * of the service.
 */
const DRIPPING = 100;
const NOT_READING = 300;
/**
 * Those that say nothing more after so many bytes of their headers do so before the gateway ends
 * them, after 10 s.
 */
const HUSHED_BYTES = 4;
/** Less than the backlog of Node's servers, which is 511. */
const BATCH = 250;
/** Files and connections of the gateway's own that come and go. */
const SLACK = 50;
/** An answer longer than any buffer on its way. */
const MIB = 1024 * 1024;
/** The chart's for the gateway. */
const MEMORY_LIMIT_MIB = 512;
const ENDLESS = Buffer.alloc(64 * MIB);

let registry: Replica;
let gateway: Replica;
let shop: Backend;
let token: string;
/** Of the answers that nobody reads: how many are still held open. */
let openAnswers = 0;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  const namespace = await createNamespace('slow');
  const database = stack.use(await createDatabase());
  registry = stack.use(await startRegistryProcess({ namespace: namespace.name, databaseUrl: database.url }));
  gateway = stack.use(
    await startGatewayProcess({
      namespace,
      registry: registry.url,
      settings: {
        ROLLCALL_LIMIT_PREMIUM: '1000000',
        ROLLCALL_LIMIT_ANONYMOUS: '1000000',
        ROLLCALL_ACCESS_LOG: 'off',
      },
    }),
  );
  token = await tokenOf(gateway, await createClient(namespace, { id: 'tests' }));
  shop = stack.use(
    await startBackend((request, response) => {
      if (request.url?.endsWith('/endless') !== true) {
        response.end('fine');
        return;
      }
      openAnswers += 1;
      response.once('close', () => {
        openAnswers -= 1;
      });
      response.end(ENDLESS);
    }),
  );
  await registry.call('POST', '/services/register', { service_name: 'shop', service_url: shop.url });
  await waitUntil('the gateway has heard of the service', isServed, { timeoutMs: 30_000 });
});

afterAll(() => stack.disposeAsync());

async function statusOf(path: string): Promise<number> {
  const answer = await fetch(`${gateway.url}${path}`, { headers: { authorization: `Bearer ${token}` } });
  await answer.arrayBuffer();
  return answer.status;
}

const isServed = async (): Promise<boolean> => (await statusOf('/api/v1/shop/quick')) === 200;

/** A connection, and the first line of what came back on it. */
interface Client {
  readonly socket: Socket;
  readonly isClosed: () => boolean;
  readonly answer: () => string;
}

/**
 * Connects from another address each time: one alone has no more than some 28,000 ports, which
 * others need, too.
 */
async function open(number: number, reads: boolean): Promise<Client> {
  const socket = connect({
    port: Number(new URL(gateway.url).port),
    host: '127.0.0.1',
    localAddress: `127.0.1.${1 + (number % 200)}`,
  });
  onTestFinished(() => void socket.destroy());
  let closed = false;
  let answer = '';
  socket.on('error', () => undefined);
  socket.once('close', () => {
    closed = true;
  });
  // Else nothing at all is read: the kernel would buffer more and more of what is read quickly
  // at first.
  if (reads)
    socket.on('data', (chunk: Buffer) => {
      if (answer === '') answer = chunk.toString('latin1', 0, chunk.indexOf('\r'));
    });
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve).once('error', reject);
  });
  return { socket, isClosed: () => closed, answer: () => answer };
}

/**
 * Opens connections, fewer at a time than wait in the backlog: the kernel forgets some beyond it,
 * which then are open here alone.
 */
async function openMany(count: number, greeting: string, reads = true): Promise<Client[]> {
  const clients: Client[] = [];
  while (clients.length < count) {
    const some = Math.min(BATCH, count - clients.length);
    const opened = await Promise.all(Array.from({ length: some }, (_, index) => open(clients.length + index, reads)));
    for (const { socket } of opened) socket.write(greeting);
    clients.push(...opened);
    // Whoever is answered has accepted what came before.
    await statusOf('/api/v1/shop/quick');
  }
  return clients;
}

/** Of the gateway, its connections above all. */
async function openFiles(): Promise<number> {
  return (await readdir(`/proc/${gateway.process.pid}/fd`)).length;
}

/** Sends a byte a second for as long as the connection is there, or so many. */
function drip({ socket }: Client, bytes = Number.POSITIVE_INFINITY): void {
  let sent = 0;
  const dripping = setInterval(() => {
    socket.write('x');
    sent += 1;
    if (sent >= bytes) clearInterval(dripping);
  }, 1000);
  socket.once('close', () => clearInterval(dripping));
}

const left = (clients: readonly Client[]) => (): number => clients.filter(({ isClosed }) => !isClosed()).length;

/**
 * Calls the service over and over; each answer must be the one of a gateway that has nothing else
 * to do.
 */
function callOn() {
  const report = { calls: 0, longestMs: 0, others: new Set<number>() };
  const stopping = new AbortController();
  const lane = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      const startedAt = performance.now();
      const status = await statusOf('/api/v1/shop/quick');
      report.longestMs = Math.max(report.longestMs, performance.now() - startedAt);
      report.calls += 1;
      if (status !== 200) report.others.add(status);
      await sleep(20);
    }
  };
  const lanes = Promise.all(Array.from({ length: 4 }, lane));
  // Whoever stops them sees why one has failed.
  lanes.catch(() => undefined);
  const stop = async (): Promise<typeof report> => {
    stopping.abort();
    await lanes;
    return report;
  };
  onTestFinished(async () => void (await stop()));
  return { stop };
}

async function residentMib(): Promise<number> {
  const status = await readFile(`/proc/${gateway.process.pid}/status`, 'utf8');
  return Math.round((Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024) / MIB);
}

/** A request's head without its end. */
const head = (line: string, ...more: readonly string[]): string =>
  [`${line} HTTP/1.1`, 'Host: gateway.example', `Authorization: Bearer ${token}`, ...more].join('\r\n');

// Memory and open files are read from /proc.
describe.runIf(process.platform === 'linux')('while others are served', () => {
  test('clients that send or read next to nothing are ended', async () => {
    const calls = callOn();
    const headers = await openMany(DRIPPING, head('GET /api/v1/shop/quick', 'X-Slow: '));
    const bodies = await openMany(DRIPPING, `${head('POST /api/v1/shop/quick', 'Content-Length: 100000')}\r\n\r\n`);
    const forms = await openMany(DRIPPING, `${head('POST /api/v1/auth/token', 'Content-Length: 8000')}\r\n\r\n`);
    const hushed = headers.slice(0, DRIPPING / 2);
    for (const client of hushed) drip(client, HUSHED_BYTES);
    for (const client of [...headers.slice(DRIPPING / 2), ...bodies, ...forms]) drip(client);
    await openMany(NOT_READING, `${head('GET /api/v1/shop/endless')}\r\n\r\n`, false);
    await expect.poll(() => openAnswers, { timeout: 60_000 }).toBe(NOT_READING);
    await expect.poll(left(headers), { timeout: 60_000 }).toBe(0);
    await expect.poll(left(forms), { timeout: 90_000 }).toBe(0);
    await expect.poll(left(bodies), { timeout: 90_000 }).toBe(0);
    // The others' next byte may meet a closed connection: the kernel then forgets the answer that
    // has not been read yet.
    expect(new Set(hushed.map(({ answer }) => answer()))).toEqual(new Set(['HTTP/1.1 408 Request Timeout']));
    // Their sockets read nothing: what shows it is that the service is rid of them.
    await expect.poll(() => openAnswers, { timeout: 240_000 }).toBe(0);
    const { calls: count, others, longestMs } = await calls.stop();
    console.info(`served ${count}, the longest in ${Math.round(longestMs)} ms`);
    expect([...others]).toEqual([]);
    expect(count).toBeGreaterThan(200);
    expect(longestMs).toBeLessThan(10_000);
  }, 500_000);

  test('10,000 idle connections cost little memory, and are closed', async () => {
    const before = { mib: await residentMib(), files: await openFiles() };
    const kept = await openMany(KEPT, `${head('GET /api/v1/shop/quick')}\r\n\r\n`);
    await expect.poll(() => kept.every(({ answer }) => answer() !== ''), { timeout: 60_000 }).toBe(true);
    const keptSinceMs = performance.now();
    const silent = await openMany(SILENT, '');
    const during = { mib: await residentMib(), files: await openFiles() };
    const calls = callOn();
    await expect.poll(left(silent), { timeout: 60_000, interval: 500 }).toBe(0);
    await expect.poll(left(kept), { timeout: 200_000, interval: 500 }).toBe(0);
    // A proxy that keeps a connection for a minute must not find it closed just when it uses it.
    expect(performance.now() - keptSinceMs).toBeGreaterThan(60_000);
    expect(new Set(kept.map(({ answer }) => answer()))).toEqual(new Set(['HTTP/1.1 200 OK']));
    await expect.poll(openFiles, { timeout: 10_000 }).toBeLessThan(before.files + SLACK);
    const { others, longestMs } = await calls.stop();
    const after = await residentMib();
    console.info(
      `RSS ${before.mib} MiB, with ${during.files} files ${during.mib}, after ${after}; longest ${Math.round(longestMs)} ms`,
    );
    expect(during.files).toBeGreaterThan(KEPT + SILENT);
    expect([...others]).toEqual([]);
    expect(longestMs).toBeLessThan(10_000);
    expect(during.mib - before.mib).toBeLessThan(200);
    expect(Math.max(during.mib, after)).toBeLessThan(MEMORY_LIMIT_MIB);
  }, 400_000);
});
