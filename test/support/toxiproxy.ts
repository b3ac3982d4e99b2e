import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { defaultCacheDirectory, findKubernetesBinaries } from '@rollcall/local/kubernetes-binaries.ts';
import { freePort, isPortFree } from '@rollcall/local/ports.ts';
import { startProcess } from '@rollcall/local/processes.ts';
import { waitUntil } from '@rollcall/local/wait.ts';
import { inject } from 'vitest';

/** For `beforeAll`: the first run on a machine builds Toxiproxy. */
export const TOXIPROXY_TIMEOUT_MS = 600_000;

/**
 * What happens to bytes on their way `upstream`, to the server, or `downstream`, to who calls it
 * (https://github.com/Shopify/toxiproxy#toxics):
 * - `latency`: each piece is late by `latency` ms;
 * - `timeout`: none goes on, and after `timeout` ms the connection is closed; 0: when the other side
 *   closes it. Downstream, a request arrives and its answer is lost;
 * - `reset_peer`: the connection is reset after `timeout` ms;
 * - `limit_data`: it is closed after so many `bytes`.
 */
interface Toxic {
  readonly type: 'latency' | 'timeout' | 'reset_peer' | 'limit_data';
  readonly stream: 'upstream' | 'downstream';
  readonly attributes: Readonly<Record<string, number>>;
}

/** A way to a server, of TCP connections, that can be made a bad one. */
export interface FaultyWay {
  /** On 127.0.0.1. */
  readonly port: number;
  /** Also for connections that are open. */
  add(toxic: Toxic): Promise<void>;
  /** Ends all connections, and refuses new ones. */
  cut(): Promise<void>;
  /** Makes it a good way again. */
  restore(): Promise<void>;
}

/** A Toxiproxy of one test file's own. */
export interface Toxiproxy extends AsyncDisposable {
  /** @param port of a server on 127.0.0.1. */
  wayTo(port: number): Promise<FaultyWay>;
}

/**
 * Starts a Toxiproxy, which is built first where it is not in the cache.
 *
 * @throws where it cannot be built, and says why.
 */
export async function createToxiproxy(): Promise<Toxiproxy> {
  const { toxiproxy } = await findKubernetesBinaries(['toxiproxy'], {
    assetsDirectory: process.env['KUBEBUILDER_ASSETS'],
    cacheDirectory: defaultCacheDirectory(process.env),
    log: (line) => console.error(line),
  });
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(inject('temporaryDirectory'), 'toxiproxy-'));
  stack.defer(() => rm(directory, { recursive: true }));
  const port = await freePort();
  const server = await startProcess({
    name: 'toxiproxy',
    command: toxiproxy,
    args: ['-host=127.0.0.1', `-port=${port}`],
    logFile: join(directory, 'toxiproxy.log'),
  });
  stack.defer(() => server.stop());
  const api = `http://127.0.0.1:${port}`;
  const isReady = async () => (await fetch(`${api}/version`).catch(() => undefined))?.ok === true;
  await waitUntil('Toxiproxy is ready', isReady, { timeoutMs: 30_000, failed: server.failed });
  const kept = stack.move();
  let ways = 0;
  return {
    async wayTo(upstreamPort) {
      ways += 1;
      const name = `way-${ways}`;
      const made = await post(`${api}/proxies`, { name, listen: '127.0.0.1:0', upstream: `127.0.0.1:${upstreamPort}` });
      return createWay(`${api}/proxies/${name}`, Number(made.listen.split(':')[1]));
    },
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

function createWay(url: string, port: number): FaultyWay {
  let toxics: string[] = [];
  return {
    port,
    async add(toxic) {
      const name = `${toxic.type}-${toxics.length}`;
      await post(`${url}/toxics`, { name, ...toxic });
      toxics.push(name);
    },
    async cut() {
      await post(url, { enabled: false });
      // It answers before it has stopped listening.
      await waitUntil('nothing listens on the way', () => isPortFree(port), { timeoutMs: 10_000, intervalMs: 10 });
    },
    async restore() {
      for (const name of toxics) await fetch(`${url}/toxics/${name}`, { method: 'DELETE' });
      toxics = [];
      await post(url, { enabled: true });
    },
  };
}

async function post(url: string, body: object): Promise<{ readonly listen: string }> {
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) });
  if (!response.ok) throw new Error(`${url} was answered ${response.status}: ${await response.text()}`);
  return (await response.json()) as { listen: string };
}
