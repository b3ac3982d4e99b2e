import { expect, test } from 'vitest';
import { operatorConfig } from './config.ts';

test('works without any setting', () => {
  expect(operatorConfig({})).toEqual({
    namespace: undefined,
    host: undefined,
    adminPort: 9090,
    logLevel: 'info',
    import: { namespaces: [], ttlMs: 60_000 },
    delivery: {
      namespaces: 'own',
      artifact: { fetcherImage: undefined, maxBytes: 1_073_741_824, allowPrivateAddresses: false },
      checkAddresses: 'cluster',
    },
    serviceAddresses: 'cluster',
    dns: undefined,
    retentionMs: 3_600_000,
    leaderLease: 'operator.rollcall.dev',
    pod: undefined,
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
    ROLLCALL_LEADER_LEASE: 'other',
    ROLLCALL_POD_NAME: 'operator-x',
    ROLLCALL_POD_UID: '5b3d',
    ROLLCALL_DELIVERY_NAMESPACES: 'shop, billing',
    ROLLCALL_FETCHER_IMAGE: 'registry.example.com/rollcall:1.0.0',
    ROLLCALL_FETCHER_MAX_BYTES: '1000',
    ROLLCALL_FETCHER_ALLOW_PRIVATE: 'true',
    ROLLCALL_CHECK_ADDRESSES: 'public',
    ROLLCALL_SERVICE_ADDRESSES: 'any',
    ROLLCALL_DNS_NAMESPACE: 'names',
    ROLLCALL_CLUSTER_DOMAIN: 'example.internal',
    ROLLCALL_DNS_HOST_NAMES: 'any',
  };
  expect(operatorConfig(environment)).toEqual({
    namespace: 'registry',
    host: '127.0.0.1',
    adminPort: 0,
    logLevel: 'debug',
    import: { namespaces: ['a', 'b'], ttlMs: 30_000 },
    delivery: {
      namespaces: ['shop', 'billing'],
      artifact: {
        fetcherImage: 'registry.example.com/rollcall:1.0.0',
        maxBytes: 1000,
        allowPrivateAddresses: true,
      },
      checkAddresses: 'public',
    },
    serviceAddresses: 'any',
    dns: { namespace: 'names', clusterDomain: 'example.internal', hostNames: 'any' },
    retentionMs: 5000,
    leaderLease: 'other',
    pod: { name: 'operator-x', uid: '5b3d' },
  });
  expect(operatorConfig({ ROLLCALL_IMPORT: 'false' }).import).toBeUndefined();
  expect(operatorConfig({ ROLLCALL_DELIVERY_NAMESPACES: 'shop,*' }).delivery.namespaces).toBe('all');
});

test('reports every fault at once', () => {
  const environment = { ROLLCALL_ADMIN_PORT: 'high', ROLLCALL_LOG_LEVEL: 'loud', ROLLCALL_RETENTION_SECONDS: '-1' };
  expect(() => operatorConfig(environment)).toThrow(/ADMIN_PORT[^]*LOG_LEVEL[^]*RETENTION_SECONDS/);
});
