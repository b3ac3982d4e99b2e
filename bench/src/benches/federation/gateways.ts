import { freePorts } from '@rollcall/local/ports.ts';
import { identityHeaders } from '@rollcall/platform/http/identity.ts';
import type { BenchContext } from '../../bench.ts';
import { type Callers, startCallers } from '../../stage/callers.ts';
import { readProcessTree } from '../../stage/process-tree.ts';
import type { RollcallSubject, Stage } from '../../stage/stage.ts';
import { findPeerPackages } from './peer-packages.ts';

export type PeerName = 'apollo' | 'mercurius' | 'mercurius with jit';

/** Something that answers queries over the same subgraphs. */
export interface Gateway {
  readonly name: 'federation' | PeerName;
  readonly port: number;
  /** Of its GraphQL. */
  readonly path: string;
  /** CPU time of its processes. */
  cpuMs(): Promise<number>;
}

/** One replica of federation on a database of its own. */
export interface Federation {
  readonly service: RollcallSubject;
  readonly callers: Callers;
  /**
   * Takes a service into the graph.
   *
   * @returns milliseconds until the new graph was in force.
   */
  introspect(name: string, serviceUrl: string): Promise<number>;
}

const PEERS = [
  { name: 'apollo', script: 'apollo-gateway', args: [], path: '/' },
  { name: 'mercurius', script: 'mercurius-gateway', args: ['0'], path: '/graphql' },
  { name: 'mercurius with jit', script: 'mercurius-gateway', args: ['1'], path: '/graphql' },
] as const;

/** @param name of its database. */
export async function startFederation(stack: AsyncDisposableStack, stage: Stage, name: string): Promise<Federation> {
  const [keysPort = 0] = await freePorts(1);
  const callers = stack.use(await startCallers(keysPort));
  const service = await stage.startFederation({
    ROLLCALL_DATABASE_URL: await stage.createDatabase(name),
    ROLLCALL_GATEWAY_KEYS_URL: callers.jwksUrl,
    ROLLCALL_ACCESS_LOG: 'off',
  });
  stack.defer(() => service.stop());
  const identity = await callers.identityOf('federation', 'bench', 'schemas:write');
  return {
    service,
    callers,
    async introspect(name, serviceUrl) {
      const startedAtMs = performance.now();
      const response = await fetch(`http://127.0.0.1:${service.port}/api/schemas/introspect`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', [identityHeaders.token]: identity },
        body: JSON.stringify({ name, serviceUrl }),
      });
      const answer = await response.text();
      const isComposed = response.ok && answer.includes('"status":"composed"');
      if (!isComposed) throw new Error(`The schema of ${name} is not in the graph: ${answer}`);
      return performance.now() - startedAtMs;
    },
  };
}

/**
 * Starts federation and its peers over the same subgraphs, by their names.
 *
 * @returns federation alone where the peers cannot be had; the log says why.
 */
export async function startGateways(
  stack: AsyncDisposableStack,
  { stage, log }: Pick<BenchContext, 'stage' | 'log'>,
  urls: ReadonlyMap<string, string>,
): Promise<Gateway[]> {
  const federation = await startFederation(stack, stage, 'federation');
  const { service } = federation;
  for (const [name, url] of urls) await federation.introspect(name, url);
  const cpuMs = async () => (await readProcessTree(service.process.pid)).cpuMs;
  const gateways: Gateway[] = [{ name: 'federation', port: service.port, path: '/api/graphql', cpuMs }];
  const packages = await findPeerPackages(process.env, log);
  if ('problem' in packages) {
    log(`federation: there are no peers: ${packages.problem}`);
    return gateways;
  }
  const named = [...urls].map(([name, url]) => `${name}=${url}`);
  for (const { name, script, args, path } of PEERS) {
    const [port = 0] = await freePorts(1);
    const peer = await stage.startPeer(script, [String(port), packages.directory, ...args, ...named]);
    stack.defer(() => peer.stop());
    gateways.push({ name, port, path, cpuMs: async () => (await readProcessTree(peer.process.pid)).cpuMs });
  }
  return gateways;
}
