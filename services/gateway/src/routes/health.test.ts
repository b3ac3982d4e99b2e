import { fastify } from 'fastify';
import { expect, test } from 'vitest';
import { healthRoute } from './health.ts';

test('the uptime is in whole seconds of a clock that never jumps, and what is lacking is told by the status', async () => {
  const clock = { ms: 5_000_123, monotonicMs: () => clock.ms, now: () => new Date(0) };
  let fault: string | undefined = 'starting';
  const app = fastify();
  healthRoute(app, { version: '1.2.3', clock, fault: () => fault });
  const ask = async () => {
    const { statusCode, body } = await app.inject('/api/health');
    return [statusCode, JSON.parse(body)];
  };
  expect(await ask()).toEqual([503, { status: 'unhealthy', version: '1.2.3', uptime: 0 }]);
  fault = undefined;
  clock.ms += 999;
  expect(await ask()).toEqual([200, { status: 'healthy', version: '1.2.3', uptime: 0 }]);
  clock.ms += 90_001;
  expect(await ask()).toEqual([200, { status: 'healthy', version: '1.2.3', uptime: 91 }]);
});
