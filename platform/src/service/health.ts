import { Type } from 'typebox';
import type { Routes } from './app.ts';

/** Something that a service needs, or does without. */
export interface HealthPart {
  /** A member of the report, such as `database` (contract 2). */
  readonly name: string;
  readonly isConnected: () => boolean;
  /** Whether the service is unhealthy without it. */
  readonly isNeeded: boolean;
}

export interface HealthOptions {
  readonly service: string;
  readonly version: string;
  readonly parts: readonly HealthPart[];
}

const Connection = Type.Union([Type.Literal('connected'), Type.Literal('disconnected')]);

/** Whether nothing lacks that is needed. */
export function areHealthy(parts: readonly HealthPart[]): boolean {
  return parts.every(({ isNeeded, isConnected }) => !isNeeded || isConnected());
}

/** `GET /health` of contract 2: 503 where something is not there that is needed. */
export function healthRoutes({ service, version, parts }: HealthOptions): Routes {
  const HealthReport = Type.Object({
    status: Type.Union([Type.Literal('healthy'), Type.Literal('unhealthy')]),
    service: Type.String(),
    version: Type.String(),
    ...Object.fromEntries(parts.map(({ name }) => [name, Connection])),
  });
  const schema = { tags: ['health'], summary: 'Health report', response: { 200: HealthReport, 503: HealthReport } };
  return (app) => {
    app.get('/health', { schema }, async (_request, reply) => {
      const isHealthy = areHealthy(parts);
      const states = parts.map(({ name, isConnected }) => [name, isConnected() ? 'connected' : 'disconnected']);
      const status: 'healthy' | 'unhealthy' = isHealthy ? 'healthy' : 'unhealthy';
      return reply.status(isHealthy ? 200 : 503).send({ status, service, version, ...Object.fromEntries(states) });
    });
  };
}
