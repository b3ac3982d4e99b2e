import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Agent, createServer, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import type { DeliveryJob } from '@rollcall/crds/types.gen.ts';
import type { World } from './world.ts';

type JobStatus = NonNullable<DeliveryJob['status']>;

/**
 * A job's `status` is stored, and the operator that wrote it waits for the answer.
 *
 * @returns whether it is to get one.
 */
export type StatusHook = (status: JobStatus, job: string) => Promise<boolean>;

/**
 * Stands between an operator and the API server, so that a test can act right after the operator
 * has stored a stage: by a watch it would come to know of it too late.
 *
 * @returns the variables of a pod that lead through it. Stopped when the test ends.
 */
export async function startStageProxy(world: World, onStatus: StatusHook): Promise<Readonly<Record<string, string>>> {
  const { cluster, namespace, onTestFinished } = world;
  const { server: target, certificates, podEnvironment } = cluster.facts;
  const [ca, cert, key] = await Promise.all(
    [certificates.ca, certificates.serverCertificate, certificates.serverKey].map((path) => readFile(path)),
  );
  const agent = new Agent({ keepAlive: true, ca });
  const statusPath = new RegExp(`/namespaces/${namespace}/deliveryjobs/([^/]+)/status$`);

  async function pass(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { method, url = '/', headers } = incoming;
    const forwarded = request(new URL(url, target), { agent, method, headers });
    outgoing.on('close', () => forwarded.destroy());
    const [[answer]] = (await Promise.all([once(forwarded, 'response'), pipeline(incoming, forwarded)])) as [
      [IncomingMessage],
      void,
    ];
    const { statusCode = 502 } = answer;
    const job = statusPath.exec(url.split('?')[0] ?? '')?.[1];
    if (method === 'GET' || statusCode >= 300 || job === undefined) {
      outgoing.writeHead(statusCode, answer.headers);
      outgoing.flushHeaders();
      return pipeline(answer, outgoing);
    }
    const body = await buffer(answer);
    const { status } = JSON.parse(body.toString()) as DeliveryJob;
    if (status !== undefined && !(await onStatus(status, job))) {
      outgoing.destroy();
      return undefined;
    }
    outgoing.writeHead(statusCode, { 'content-type': answer.headers['content-type'] });
    outgoing.end(body);
    return undefined;
  }

  const server = createServer({ cert, key }, (incoming, outgoing) => {
    pass(incoming, outgoing).catch(() => outgoing.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    server.close();
    server.closeAllConnections();
    agent.destroy();
    await once(server, 'close');
  });
  const { port } = server.address() as AddressInfo;
  return { ...podEnvironment, KUBERNETES_SERVICE_PORT: String(port) };
}
