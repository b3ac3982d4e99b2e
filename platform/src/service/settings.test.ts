import { Type } from 'typebox';
import { expect, test } from 'vitest';
import { parseConfig } from '../process/config.ts';
import { serviceConfig, serviceSettings } from './settings.ts';

const REQUIRED = {
  ROLLCALL_DATABASE_URL: 'postgres://me:word@db/rollcall',
  ROLLCALL_VAULT_KEYS_FILE: '/keys.yaml',
  ROLLCALL_GATEWAY_KEYS_URL: 'http://gateway:3000/.well-known/jwks.json',
  ROLLCALL_PUBLIC_URL: 'https://api.example.com/',
};
const REGISTRIES = { ROLLCALL_REGISTRY_URLS: 'http://a:3001, http://b:3001' };

function configOf(environment: Readonly<Record<string, string>>) {
  return serviceConfig(parseConfig(Type.Object(serviceSettings(3003)), { ...REQUIRED, ...environment }));
}

test.each([
  ['it is told', { ROLLCALL_SERVICE_URL: 'http://me:1' }, 'http://me:1'],
  ['the pod is', { ROLLCALL_POD_IP: '10.1.2.3' }, 'http://10.1.2.3:3003'],
  ['the pod is, by IPv6', { ROLLCALL_POD_IP: 'fd00::7', ROLLCALL_PORT: '80' }, 'http://[fd00::7]:80'],
  ['it is told, in a pod', { ROLLCALL_POD_IP: '10.1.2.3', ROLLCALL_SERVICE_URL: 'http://me:1' }, 'http://me:1'],
])('a replica is registered where %s', (_where, environment, url) => {
  const { registration } = configOf({ ...REGISTRIES, ...environment });
  expect(registration).toEqual({ registries: ['http://a:3001', 'http://b:3001'], url });
});

test('nothing is registered without a registry', () => {
  expect(configOf({ ROLLCALL_POD_IP: '10.1.2.3' }).registration).toBeUndefined();
});

test.each<[string, Record<string, string>, string]>([
  ['where a replica is, of nobody', REGISTRIES, 'ROLLCALL_SERVICE_URL is required with ROLLCALL_REGISTRY_URLS'],
  ['a replica that is nowhere', { ...REGISTRIES, ROLLCALL_POD_IP: 'here or there' }, 'ROLLCALL_SERVICE_URL'],
  ['a registry that is no URL', { ROLLCALL_REGISTRY_URLS: 'a:3001', ROLLCALL_POD_IP: '10.1.2.3' }, 'REGISTRY_URLS'],
  ['a public URL that is none', { ROLLCALL_PUBLIC_URL: 'api.example.com' }, 'ROLLCALL_PUBLIC_URL'],
  ['keys that are nowhere', { ROLLCALL_GATEWAY_KEYS_URL: 'gateway' }, 'ROLLCALL_GATEWAY_KEYS_URL'],
])('refuses %s', (_what, environment, named) => {
  expect(() => configOf(environment)).toThrow(named);
});
