// `node grpc-proxy.ts PORT GRPC_PORT BACKEND_PORT`: the gateway's gRPC proxy alone, whose callers are known and not limited, so that
// passing calls on is measured. On PORT it tells its CPU time.
import { endpointsBy } from '@rollcall/gateway/discovery/endpoints.ts';
import { createGrpcProxy } from '@rollcall/gateway/grpc/proxy.ts';
import { defaultBreakerPolicy } from '@rollcall/gateway/policy/breaker.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { createLogger } from '@rollcall/platform/log.ts';
import { createMetrics } from '@rollcall/platform/metrics.ts';
import { serveCpu } from './cpu-server.ts';

const [port = '', grpcPort = '', backendPort = ''] = process.argv.slice(2);
const caller = {
  subject: 'bench',
  tier: 'premium',
  scopes: new Set<string>(),
  expiresAtMs: Number.POSITIVE_INFINITY,
} as const;
const endpointsOf = endpointsBy({
  resolve: async () => [],
  breakerPolicy: defaultBreakerPolicy,
  clock: systemClock,
});
const target = {
  service: 'bench',
  origin: `http://127.0.0.1:${backendPort}`,
  endpoints: endpointsOf('127.0.0.1'),
};
const proxy = createGrpcProxy({
  host: '127.0.0.1',
  port: Number(grpcPort),
  authenticator: { authenticate: () => caller, stillHolds: () => true },
  take: () => ({ allowed: true, headers: { 'x-ratelimit-limit': '1000' }, retryAfterMs: 0 }),
  targets: { find: (name) => (name === 'bench' ? target : undefined), known: () => true },
  identityHeaders: () => ['x-rollcall-subject', 'bench', 'x-rollcall-tier', 'premium'],
  log: createLogger('gateway', 'info'),
  metrics: createMetrics('gateway'),
  clock: systemClock,
  drainMs: 0,
  closingLimitMs: 1000,
});
await proxy.start();
serveCpu(Number(port));
