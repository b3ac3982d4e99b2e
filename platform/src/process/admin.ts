import { fastify } from 'fastify';
import type { Registry } from 'prom-client';
import { anyAddress } from '../http/any-address.ts';
import type { Actor } from './lifecycle.ts';

export interface AdminOptions {
  /** Undefined: any address. */
  readonly host: string | undefined;
  readonly port: number;
  readonly metrics: Registry;
  /** Undefined when the process may get traffic, else what it waits for. */
  readonly unready: () => string | undefined;
}

/**
 * The admin port that every process has and no ingress exposes: `/livez`, `/readyz`,
 * `/metrics`.
 */
export function adminServer({ host, port, metrics, unready }: AdminOptions): Actor {
  const app = fastify({ forceCloseConnections: true });
  app.get('/livez', () => 'ok');
  app.get('/readyz', (_request, reply) => {
    const reason = unready();
    return reason === undefined ? 'ok' : reply.status(503).send(reason);
  });
  app.get('/metrics', async (_request, reply) => reply.type(metrics.contentType).send(await metrics.metrics()));
  return {
    name: 'admin server',
    start: async () => void (await app.listen({ host: host ?? (await anyAddress()), port })),
    stop: () => app.close(),
  };
}
