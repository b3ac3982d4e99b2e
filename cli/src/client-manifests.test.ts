import { describe, expect, it } from 'vitest';
import { buildClient, clientIdFault } from './client-manifests.ts';

describe('buildClient', () => {
  it('keeps the secret out of the objects', () => {
    const { secret, list } = buildClient({ clientId: 'shop', tier: 'Standard', scopes: ['a'], namespace: 'rollcall' });
    expect(secret).toMatch(/^[\w-]{43}$/);
    expect(JSON.stringify(list)).not.toContain(secret);
    expect(list).toEqual({
      apiVersion: 'v1',
      kind: 'List',
      items: [
        {
          apiVersion: 'v1',
          kind: 'Secret',
          metadata: { name: 'shop-api-client', namespace: 'rollcall', labels: { 'rollcall.dev/api-client': 'true' } },
          type: 'Opaque',
          stringData: { secret: expect.stringMatching(/^\$scrypt\$ln=14,r=8,p=5\$[\w+/]{22}\$[\w+/]{43}$/) },
        },
        {
          apiVersion: 'rollcall.dev/v1alpha1',
          kind: 'ApiClient',
          metadata: { name: 'shop', namespace: 'rollcall' },
          spec: { clientId: 'shop', tier: 'Standard', scopes: ['a'], secretRef: { name: 'shop-api-client' } },
        },
      ],
    });
  });

  it.each([
    ['Shop_API', 'shop-api'],
    ['a.b~c', 'a.b-c'],
    ['a..b', 'a.b'],
    ['a.-b-.c', 'a.b.c'],
    ['x~', 'x'],
  ])('calls the object of %s %s', (clientId, name) => {
    const { list } = buildClient({ clientId, tier: 'Free', scopes: [], namespace: undefined });
    expect(list).toMatchObject({ items: [{ metadata: { name: `${name}-api-client` } }, { metadata: { name } }] });
  });
});

it.each(['', '-a', 'a b', 'a/b', 'é', 'a'.repeat(129)])('refuses the client id %j', (clientId) => {
  expect(clientIdFault(clientId)).toMatch(/^must be/);
});
