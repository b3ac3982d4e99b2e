import { serviceNameFault } from '@rollcall/platform/service-address.ts';
import { expect, test } from 'vitest';
import { serviceNameOf } from './names.ts';

test.each([
  ['http://users.shop.svc.cluster.local:4000/api/graphql', 'users'],
  ['http://users/graphql', 'users'],
  ['https://gateway.example/reviews/graphql', 'reviews'],
  ['https://gateway.example/api/v1/payment/graphql', 'payment'],
  ['http://127.0.0.1:4001/graphql', '127.0.0.1-4001'],
  ['http://localhost:4001/', 'localhost-4001'],
  ['http://[::1]:4001/graphql', '1-4001'],
  ['http://10.0.0.7/', '10.0.0.7'],
  ['http://users/%e2%80%ae:x/graphql', 'e2-80-ae-x'],
  ['http://users/%%%/graphql', 'service'],
])('%s is of the service %s', (url, name) => {
  expect(serviceNameOf(url)).toBe(name);
  expect(serviceNameFault(serviceNameOf(url))).toBeUndefined();
});
