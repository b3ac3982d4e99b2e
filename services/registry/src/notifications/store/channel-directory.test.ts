import { objectNameFor } from '@rollcall/crds/kinds.ts';
import type { WebhookConfig } from '@rollcall/crds/types.gen.ts';
import type { Connectivity } from '@rollcall/platform/kube/informer.ts';
import { createStore } from '@rollcall/platform/kube/store.ts';
import { expect, test } from 'vitest';
import { createChannelDirectory } from './channel-directory.ts';

let version = 0;

function config(serviceName: string, url: string, metadata: Partial<WebhookConfig['metadata']> = {}): WebhookConfig {
  version += 1;
  return {
    apiVersion: 'rollcall.dev/v1alpha1',
    kind: 'WebhookConfig',
    metadata: {
      name: objectNameFor(serviceName),
      namespace: 'default',
      uid: `uid-${version}`,
      resourceVersion: String(version),
      creationTimestamp: '2026-11-20T10:00:00Z',
      ...metadata,
    },
    spec: { serviceName, endpoints: url === '' ? {} : { ops: url } },
  };
}

/** @param copy what the watch has brought; the store itself has only what it was asked for. */
function setUp(copy: readonly WebhookConfig[], connectivity: Connectivity = 'connected') {
  const store = createStore<WebhookConfig>(() => undefined);
  for (const each of copy) store.put(each);
  const asked: string[] = [];
  const directory = createChannelDirectory({
    informer: { store, connectivity: () => connectivity },
    namespace: 'default',
    configs: {
      async find(serviceName) {
        asked.push(serviceName);
        const endpoints = new Map(serviceName === '*' ? [['ops', 'http://asked/']] : []);
        return { serviceName, endpoints, configuredAt: new Date(0), secretRef: undefined };
      },
    },
  });
  return { asked, find: async (isFresh: boolean) => [...(await directory.find('shop', isFresh)).values()] };
}

test.for<[string, readonly WebhookConfig[], readonly string[]]>([
  ['those of the service', [config('shop', 'http://own/'), config('*', 'http://all/')], ['http://own/']],
  [
    'the global ones where the service has none',
    [config('cart', 'http://cart/'), config('*', 'http://all/')],
    ['http://all/'],
  ],
  [
    'the global ones where the service has an empty list',
    [config('shop', ''), config('*', 'http://all/')],
    ['http://all/'],
  ],
  ['none where there are none', [config('cart', 'http://cart/')], []],
  [
    'of several those under the canonical name',
    [
      config('shop', 'http://older/', { name: 'mine', creationTimestamp: '2026-11-19T10:00:00Z' }),
      config('shop', 'http://own/'),
    ],
    ['http://own/'],
  ],
  [
    'else the oldest, also where another service has the canonical name',
    [
      config('cart', 'http://cart/', { name: objectNameFor('shop') }),
      config('shop', 'http://younger/', { name: 'b', creationTimestamp: '2026-11-19T11:00:00Z' }),
      config('shop', 'http://older/', { name: 'c', creationTimestamp: '2026-11-19T10:00:00Z' }),
    ],
    ['http://older/'],
  ],
])('from the copy: %s', async ([, copy, expected]) => {
  const { find, asked } = setUp(copy);
  expect(await find(false)).toEqual(expected);
  expect(asked).toEqual([]);
});

test.for<[string, Connectivity, boolean]>([
  ['while the watch is interrupted', 'disconnected', false],
  ['for what must be fresh', 'connected', true],
])('the store itself is asked %s', async ([, connectivity, isFresh]) => {
  const { find, asked } = setUp([config('shop', 'http://own/')], connectivity);
  expect(await find(isFresh)).toEqual(['http://asked/']);
  expect(asked).toEqual(['shop', '*']);
});
