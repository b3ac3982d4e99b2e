import { expect, test } from 'vitest';
import { operatorConfig } from './config.ts';

test('works without any setting', () => {
  expect(operatorConfig({})).toEqual({
    namespace: undefined,
    host: '0.0.0.0',
    adminPort: 9090,
    logLevel: 'info',
    import: { namespaces: [], ttlMs: 60_000 },
    retentionMs: 3_600_000,
    concurrency: 50,
    leaderLease: 'operator.rollcall.dev',
  });
});

test('reads every setting', () => {
  const environment = {
    ROLLCALL_NAMESPACE: 'registry',
    ROLLCALL_HOST: '127.0.0.1',
    ROLLCALL_ADMIN_PORT: '0',
    ROLLCALL_LOG_LEVEL: 'debug',
    ROLLCALL_IMPORT_NAMESPACES: 'a, b,,a',
    ROLLCALL_IMPORT_TTL_SECONDS: '30',
    ROLLCALL_RETENTION_SECONDS: '5',
    ROLLCALL_CONCURRENCY: '7',
    ROLLCALL_LEADER_LEASE: 'other',
  };
  expect(operatorConfig(environment)).toEqual({
    namespace: 'registry',
    host: '127.0.0.1',
    adminPort: 0,
    logLevel: 'debug',
    import: { namespaces: ['a', 'b'], ttlMs: 30_000 },
    retentionMs: 5000,
    concurrency: 7,
    leaderLease: 'other',
  });
  expect(operatorConfig({ ROLLCALL_IMPORT: 'false' }).import).toBeUndefined();
});

test('tells every fault at once', () => {
  const environment = { ROLLCALL_ADMIN_PORT: 'high', ROLLCALL_LOG_LEVEL: 'loud', ROLLCALL_CONCURRENCY: '0' };
  expect(() => operatorConfig(environment)).toThrow(/ADMIN_PORT[^]*LOG_LEVEL[^]*CONCURRENCY/);
});
